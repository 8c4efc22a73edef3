export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>;

/** Answers the calls of a test, which started this process as an actor, until the test ends. */
export function answerCalls(methods: Methods): void {
  process.on("message", async ({ id, method, args }: { id: number; method: string; args: never[] }) => {
    try {
      const call = methods[method];
      if (call === undefined) throw new Error(`no method ${method}`);
      process.send?.({ id, result: await call(...args) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
  // The test has ended, in whatever way.
  process.on("disconnect", () => process.exit());
}
