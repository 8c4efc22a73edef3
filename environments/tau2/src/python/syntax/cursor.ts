import { UnexpectedToken } from "./error.ts";
import type { Token } from "./tokens.ts";

const END = { kind: "end", text: "" } as const;

/** A position in tokens. */
export class TokenCursor {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[], at = 0) {
    this.#tokens = tokens;
    this.#at = at;
  }

  get position(): number {
    return this.#at;
  }

  get line(): number {
    return (this.#tokens[this.#at] ?? this.#tokens.at(-1))?.line ?? 1;
  }

  get token(): Token | typeof END {
    return this.#tokens[this.#at] ?? END;
  }

  get next(): Token | typeof END {
    return this.#tokens[this.#at + 1] ?? END;
  }

  get previous(): Token | undefined {
    return this.#tokens[this.#at - 1];
  }

  get isEnd(): boolean {
    return this.token.kind === "end";
  }

  skip(count: number): void {
    this.#at += count;
  }

  /** Whether the token is this operator or keyword. */
  is(text: string): boolean {
    const { kind } = this.token;
    return this.token.text === text && (kind === "operator" || kind === "keyword");
  }

  /** Skips this operator or keyword if it is here. */
  take(text: string): boolean {
    if (!this.is(text)) return false;
    this.#at++;
    return true;
  }

  expect(text: string): void {
    if (!this.take(text)) throw this.unexpected();
  }

  expectEnd(): void {
    if (!this.isEnd) throw this.unexpected();
  }

  name(): string {
    const { token } = this;
    if (token.kind !== "name") throw this.unexpected(false);
    this.#at++;
    return token.text;
  }

  unexpected(isAfterOperand = true): UnexpectedToken {
    const found = this.isEnd ? "the end" : `'${this.token.text}'`;
    return new UnexpectedToken(`${found} is unexpected here`, this.line, this.#at, isAfterOperand);
  }
}
