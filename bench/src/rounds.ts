/**
 * Lets several measurements take turns, so that whatever else the machine does falls on all of them alike. Each round begins
 * with the next one, A B C, B C A, so that none always comes after the same other. Gives each one's results by round.
 */
export async function takeTurns<Name extends string, Result>(
  rounds: number,
  measurements: Readonly<Record<Name, () => Promise<Result>>>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(measurements) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Result[]>;
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length] as Name;
      results[name].push(await measurements[name]());
    }
  }
  return results;
}
