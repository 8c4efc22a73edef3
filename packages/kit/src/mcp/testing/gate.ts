import type { CallContext } from "../../definition/definition.ts";

/** A tool that waits until the test releases it, so that tests need no timing. */
export interface Gate {
  readonly tool: { readonly name: string; run(input: unknown, context: CallContext<unknown>): Promise<unknown> };
  /** Resolves with the input when the tool is called. */
  entered(): Promise<CallContext<unknown>>;
  /** Releases the oldest waiting call. */
  open(value: unknown): void;
  /** Why the call's signal fired. */
  aborted(context: CallContext<unknown>): Promise<string>;
}

export function gate(name = "wait"): Gate {
  const arrived: CallContext<unknown>[] = [];
  const watching: ((context: CallContext<unknown>) => void)[] = [];
  const waiting: ((value: unknown) => void)[] = [];
  return {
    tool: {
      name,
      run: (_, context) => {
        const watcher = watching.shift();
        if (watcher === undefined) arrived.push(context);
        else watcher(context);
        return new Promise((resolve) => waiting.push(resolve));
      },
    },
    entered: () => {
      const context = arrived.shift();
      return context !== undefined ? Promise.resolve(context) : new Promise((resolve) => watching.push(resolve));
    },
    open: (value) => waiting.shift()?.(value),
    aborted: ({ signal }) =>
      new Promise((resolve) => {
        const tell = () => resolve(signal.reason instanceof Error ? signal.reason.message : String(signal.reason));
        if (signal.aborted) tell();
        else signal.addEventListener("abort", tell, { once: true });
      }),
  };
}
