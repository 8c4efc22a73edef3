/**
 * Runs several measurements in turns, so that other load of the machine affects all of them. Each round starts with the next
 * one, A B C, B C A, so that none always follows the same other. Returns the results of each by round.
 */
export async function takeTurns<Name extends string, Result>(
  rounds: number,
  measurements: Readonly<Record<Name, () => Promise<Result>>>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(measurements) as Name[];
  const results = Object.fromEntries(names.map((name): [Name, Result[]] => [name, []])) as Record<Name, Result[]>;
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length] as Name;
      results[name].push(await measurements[name]());
    }
  }
  return results;
}
