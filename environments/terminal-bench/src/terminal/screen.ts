export interface ScreenSize {
  readonly rows: number;
  readonly cols: number;
}

/** Lines that are kept above the screen. */
const HISTORY_LINES = 50_000;

/** What a shell prints before each prompt, so that the end of a command is known. */
export const PROMPT_MARK = "777;aenv-prompt";

/** One control sequence, or plain text. */
const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them
  /\x1b\[([0-9;?<>=]*)[ -/]*([@-~])|\x1b\]([^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Za-z]|\x1b([^[\]()*+])|([\x00-\x1a\x1c-\x1f\x7f])|([^\x00-\x1f\x7f]+)/gy;

/** The screen of a terminal: text and cursor. Colors and other attributes are left out. */
export class Screen {
  readonly #size: ScreenSize;
  readonly #decoder = new TextDecoder();
  readonly #history: string[] = [];
  #lines: string[][];
  #row = 0;
  #col = 0;
  #saved = { row: 0, col: 0 };
  /** The lines of the usual screen while a program uses the other one. */
  #behind: string[][] | null = null;
  /** The beginning of a sequence that has not arrived completely. */
  #rest = "";
  #prompts = 0;

  constructor(size: ScreenSize) {
    this.#size = size;
    this.#lines = emptyLines(size.rows);
  }

  /** How often a prompt was printed. */
  get prompts(): number {
    return this.#prompts;
  }

  write(bytes: Uint8Array): void {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    TOKEN.lastIndex = 0;
    let end = 0;
    for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
      end = TOKEN.lastIndex;
      const [, parameters, final, command, escaped, control, plain] = match;
      if (plain !== undefined) for (const character of plain) this.#put(character);
      else if (control !== undefined) this.#control(control);
      else if (final !== undefined) this.#sequence(parameters ?? "", final);
      else if (command !== undefined) this.#prompts += command === PROMPT_MARK ? 1 : 0;
      else if (escaped !== undefined) this.#escape(escaped);
    }
    // What matches nothing is a sequence without its end; one that never ends is dropped.
    this.#rest = text.length - end > 4_096 ? "" : text.slice(end);
  }

  /** What is visible. */
  text(): string {
    return joined(this.#lines.map(lineText));
  }

  /** What is visible, after what has scrolled away. */
  all(): string {
    return joined([...this.#history, ...this.#lines.map(lineText)]);
  }

  #put(character: string): void {
    if (this.#col >= this.#size.cols) this.#newLine(0);
    const line = this.#lines[this.#row];
    if (line === undefined) return;
    while (line.length < this.#col) line.push(" ");
    line[this.#col++] = character;
  }

  #newLine(col: number): void {
    this.#col = col;
    if (this.#row < this.#size.rows - 1) {
      this.#row++;
      return;
    }
    const gone = this.#lines.shift();
    this.#lines.push([]);
    if (this.#behind !== null || gone === undefined) return;
    this.#history.push(lineText(gone));
    if (this.#history.length > HISTORY_LINES) this.#history.shift();
  }

  #control(code: string): void {
    if (code === "\r") this.#col = 0;
    else if (code === "\n" || code === "\v" || code === "\f") this.#newLine(this.#col);
    else if (code === "\b") this.#col = Math.max(0, this.#col - 1);
    else if (code === "\t") this.#col = Math.min(this.#size.cols - 1, (Math.floor(this.#col / 8) + 1) * 8);
  }

  #escape(code: string): void {
    if (code === "7") this.#saved = { row: this.#row, col: this.#col };
    else if (code === "8") this.#move(this.#saved.row, this.#saved.col);
    else if (code === "M") this.#row === 0 ? this.#scrollDown() : this.#row--;
    else if (code === "D") this.#newLine(this.#col);
    else if (code === "E") this.#newLine(0);
    else if (code === "c") this.#lines = emptyLines(this.#size.rows);
  }

  #scrollDown(): void {
    this.#lines.pop();
    this.#lines.unshift([]);
  }

  #sequence(parameters: string, final: string): void {
    const given = parameters.replace(/^[?<>=]/, "").split(";");
    const at = (i: number, otherwise: number): number => Number(given[i] || otherwise);
    const count = Math.max(1, at(0, 1));
    const line = this.#lines[this.#row] ?? [];
    if (final === "A") this.#move(this.#row - count, this.#col);
    else if (final === "B") this.#move(this.#row + count, this.#col);
    else if (final === "C") this.#move(this.#row, this.#col + count);
    else if (final === "D") this.#move(this.#row, this.#col - count);
    else if (final === "E") this.#move(this.#row + count, 0);
    else if (final === "F") this.#move(this.#row - count, 0);
    else if (final === "G") this.#move(this.#row, count - 1);
    else if (final === "d") this.#move(count - 1, this.#col);
    else if (final === "H" || final === "f") this.#move(at(0, 1) - 1, at(1, 1) - 1);
    else if (final === "J") this.#eraseScreen(at(0, 0));
    else if (final === "K") this.#eraseLine(at(0, 0));
    else if (final === "P") line.splice(this.#col, count);
    else if (final === "X") for (let i = 0; i < count && this.#col + i < line.length; i++) line[this.#col + i] = " ";
    else if (final === "@" && line.length > this.#col) line.splice(this.#col, 0, ...Array<string>(count).fill(" "));
    else if (final === "L") this.#lines = [...this.#lines.toSpliced(this.#row, 0, ...emptyLines(count))].slice(0, this.#size.rows);
    else if (final === "M") this.#lines = [...this.#lines.toSpliced(this.#row, count), ...emptyLines(count)].slice(0, this.#size.rows);
    else if ((final === "h" || final === "l") && /^\?(?:1049|1047|47)$/.test(parameters)) this.#switchScreen(final === "h");
    while (this.#lines.length < this.#size.rows) this.#lines.push([]);
  }

  #move(row: number, col: number): void {
    this.#row = Math.min(Math.max(0, row), this.#size.rows - 1);
    this.#col = Math.min(Math.max(0, col), this.#size.cols - 1);
  }

  #eraseScreen(what: number): void {
    if (what >= 2) this.#lines = emptyLines(this.#size.rows);
    const [from, to] = what === 1 ? [0, this.#row] : [this.#row + 1, this.#size.rows];
    if (what < 2) for (let row = from; row < to; row++) this.#lines[row] = [];
    if (what < 2) this.#eraseLine(what);
  }

  #eraseLine(what: number): void {
    const line = this.#lines[this.#row] ?? [];
    if (what === 0) line.length = Math.min(line.length, this.#col);
    else if (what === 1) line.fill(" ", 0, Math.min(line.length, this.#col + 1));
    else line.length = 0;
  }

  #switchScreen(isOther: boolean): void {
    if (isOther === (this.#behind !== null)) return;
    if (isOther) this.#saved = { row: this.#row, col: this.#col };
    const shown = this.#behind ?? emptyLines(this.#size.rows);
    this.#behind = isOther ? this.#lines : null;
    this.#lines = shown;
    if (!isOther) this.#move(this.#saved.row, this.#saved.col);
  }
}

function emptyLines(count: number): string[][] {
  return Array.from({ length: count }, () => []);
}

function lineText(line: readonly string[]): string {
  return line.join("").trimEnd();
}

function joined(lines: readonly string[]): string {
  return lines.join("\n").trimEnd();
}
