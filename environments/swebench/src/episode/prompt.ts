import { columnText, type Row } from "../dataset/row.ts";
import { REPOSITORY } from "../evaluate/attempts.ts";

/** What the agent reads: the problem in a plain frame. */
export function promptOf(row: Row): string {
  const problem = row.get("problem_statement");
  return `The repository ${columnText(row, "repo")} is in ${REPOSITORY}. Change its code so that the problem below is solved.

You work in a sandbox. The tests that decide are not in it, and are run elsewhere on your version of the files in ${REPOSITORY}: nothing else that you change counts. Changes of existing tests and of files that configure tests do not count either. There is nothing to commit or to submit: stop when you are done.

<problem>
${typeof problem === "string" ? problem.trim() : ""}
</problem>
`;
}
