/** A kind, and how many of it may wait at the end of a step. */
export interface Share {
  readonly name: string;
  readonly upTo: number;
}

/** Takes the room for one more of a kind; false if there is none. */
export type Budget = (name: string) => boolean;

/**
 * How many of each kind should wait. Steps come in the order of their importance. Within a step, kinds get one each in turn, so that none
 * of them takes all of the budget.
 */
export function share(steps: readonly (readonly Share[])[], hasRoom: Budget): Map<string, number> {
  const given = new Map<string, number>();
  const giveOne = ({ name, upTo }: Share): boolean => {
    const has = given.get(name) ?? 0;
    if (has >= upTo || !hasRoom(name)) return false;
    given.set(name, has + 1);
    return true;
  };
  for (let step of steps) while (step.length > 0) step = step.filter(giveOne);
  return given;
}
