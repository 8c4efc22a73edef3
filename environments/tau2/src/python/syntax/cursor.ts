import { PythonSyntaxError } from "./error.ts";
import { type Token, tokenize } from "./tokens.ts";

const END = { kind: "end", text: "" } as const;

/** A position in the tokens of a source. */
export class TokenCursor {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(source: string) {
    this.#tokens = tokenize(source).filter(({ kind }) => kind !== "newline");
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
    if (token.kind !== "name") throw this.unexpected();
    this.#at++;
    return token.text;
  }

  unexpected(): PythonSyntaxError {
    return new PythonSyntaxError(`'${this.token.text}' is unexpected here`);
  }
}
