import { boundedLines, isObject, messageOf, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import type { ServerProgram } from "./program.ts";
import { MAX_MESSAGE_BYTES, MAX_UNASKED_BYTES, type McpTransport, type RpcMessage, type TransportEvents } from "./transport.ts";

/** What a server has not read yet of what was sent to it. */
const MAX_UNREAD_BYTES = 32 * 1_024 ** 2;
/** A program that has closed its output ends soon. */
const END_MS = 2_000;

/** Messages as lines of a program's input and output. */
export class StdioTransport implements McpTransport {
  readonly #program: ServerProgram;
  #unread = 0;

  constructor(program: ServerProgram, events: TransportEvents) {
    this.#program = program;
    void this.#follow(events);
  }

  async send(message: RpcMessage): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    if (this.#unread + line.length > MAX_UNREAD_BYTES) throw new Error(`it does not read its input: ${this.#unread} bytes wait for it`);
    this.#unread += line.length;
    try {
      await this.#program.write(line);
    } finally {
      this.#unread -= line.length;
    }
  }

  close(): Promise<void> {
    return this.#program.close();
  }

  async #follow({ onMessage, onEnd }: TransportEvents): Promise<void> {
    let unasked = 0;
    try {
      for await (const line of boundedLines(this.#program.stdout, { maxLineLength: MAX_MESSAGE_BYTES })) {
        const message = messageIn(line);
        const isAnswer = message !== null && (message.result !== undefined || message.error !== undefined);
        unasked = isAnswer ? 0 : unasked + line.length;
        if (unasked > MAX_UNASKED_BYTES) throw new Error(`it sent more than ${MAX_UNASKED_BYTES} bytes that nobody asked for`);
        if (message !== null) onMessage(message);
      }
      const late = new Promise<string>((resolve) => setTimeout(resolve, END_MS, "it closed its output").unref());
      onEnd(withStderr(await Promise.race([this.#program.exited, late]), this.#program.stderrTail()));
    } catch (error) {
      const problem = error instanceof ReadLimitExceeded ? `its output was not accepted: ${error.message}` : messageOf(error);
      onEnd(withStderr(problem, this.#program.stderrTail()));
    }
    await this.#program.close();
  }
}

/** A line that is no message is output that does not belong there, such as a log; it is ignored. */
function messageIn(line: string): RpcMessage | null {
  if (!line.startsWith("{")) return null;
  try {
    const value = parseBoundedJson(line);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof ReadLimitExceeded) throw error;
    return null;
  }
}

function withStderr(reason: string, stderr: string): string {
  const text = stderr.trim();
  return text === "" ? reason : `${reason}; its last words on standard error: ${text}`;
}
