import { PlatformError } from "@aenv/contract";
import { forwardAbort } from "./call.ts";

/** Changes and snapshots of an instance's whole state. They run one after the other: two at once would mix their states. */
export class Changes {
  /** Controllers of changes that run or are queued; most instances never have one. */
  #controllers: Set<AbortController> | undefined;
  /** Resolves when the last change is done. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the work after those before it. Its controller is aborted by the caller's signal and by `abort`. */
  enqueue<T>(signal: AbortSignal | undefined, work: (controller: AbortController) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const stopForwarding = forwardAbort(controller, signal);
    this.#controllers ??= new Set();
    this.#controllers.add(controller);
    const result = this.#last
      .then(() => work(controller))
      .finally(() => {
        stopForwarding();
        this.#controllers?.delete(controller);
      });
    this.#last = result.catch(() => {});
    return result;
  }

  abort(reason: string): void {
    for (const controller of this.#controllers ?? []) controller.abort(new PlatformError("request.cancelled", reason));
  }

  /** Resolves when no change is running. */
  async done(): Promise<void> {
    await this.#last;
  }
}
