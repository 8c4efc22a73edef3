import type { Output, Terminal } from "./terminal.ts";

/** Prints a command's answer: text for people, or JSON for programs. */
export interface Printer {
  readonly isJson: boolean;
  /** Where text is printed: stdout, or stderr when stdout is reserved for JSON. */
  readonly output: Output;
  /** Prints a line of text. */
  print(text?: string): void;
  /** Prints the command's answer as JSON; does nothing in text mode. */
  json(value: unknown): void;
  /** Prints one event as one line of JSON; does nothing in text mode. */
  jsonLine(value: unknown): void;
}

export function createPrinter(terminal: Terminal, isJson: boolean): Printer {
  const output = isJson ? terminal.stderr : terminal.stdout;
  return {
    isJson,
    output,
    print: (text = "") => output.write(`${text}\n`),
    json: (value) => isJson && terminal.stdout.write(`${JSON.stringify(value, null, 2)}\n`),
    jsonLine: (value) => isJson && terminal.stdout.write(`${JSON.stringify(value)}\n`),
  };
}
