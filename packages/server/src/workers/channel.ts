import type { FromWorker, Question, ToWorker } from "./messages.ts";
import { receivedError } from "./sent-error.ts";

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A worker's end of the channel to its server: questions and their answers. */
export class Channel {
  readonly #send: (message: FromWorker) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  send(message: FromWorker): void {
    this.#send(message);
  }

  /** The answer of the server, which is the value that the question's kind implies. */
  ask<T>(question: Question): Promise<T> {
    const id = ++this.#lastId;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#send({ type: "question", id, question });
    });
  }

  onAnswer(message: Extract<ToWorker, { type: "answer" | "error" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "answer") waiting?.resolve(message.value);
    else waiting?.reject(receivedError(message.error));
  }
}
