/** The messages between a parent and its child. */
export interface ExpectedCall {
  readonly id: number;
  readonly name: string;
  readonly argument?: unknown;
}
export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** The child's side: answers the parent's queries until the parent exits. */
export function answerParent(answers: Readonly<Record<string, (argument: never) => unknown>>, onGone: () => void = process.exit): void {
  process.on("message", (message) => void answer(message as ExpectedCall));
  process.once("disconnect", () => onGone());

  async function answer({ id, name, argument }: ExpectedCall): Promise<void> {
    try {
      const known = answers[name];
      if (known === undefined) throw new Error(`cannot answer '${name}'`);
      send({ id, result: await known(argument as never) });
    } catch (error) {
      send({ id, error: (error as Error).stack ?? String(error) });
    }
  }
}

function send(message: Answer): void {
  process.send?.(message);
}
