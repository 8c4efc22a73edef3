import { commands, type ExerciseResult, type TerminalTask } from "../task.ts";

const BROKEN = `#!/bin/bash
# Prints the median of the integers on standard input, one per line.
# Of an even number of integers, it is the mean of the two in the middle, rounded down.
mapfile -t numbers < <(sort)
count=\${#numbers[@]}
if (( count % 2 == 1 )); then
  echo "\${numbers[count / 2]}"
else
  echo $(( (numbers[count / 2] + numbers[count / 2 + 1]) / 2 ))
fi
`;

export const fixScript: TerminalTask = {
  id: "fix-script",
  split: "test",
  instruction:
    "median.sh has bugs. Its comment says what it should do. Fix it, so that 'bash median.sh' works for any list of one or more non-negative integers. It will be tested with lists that you do not see.",
  begin: (random) => {
    // The agent cannot see these lists: they are neither files nor part of the task.
    const lists = [1, 2, 3, 4, 9, 10].map((length) => Array.from({ length }, () => random.integer(0, 10 ** random.integer(1, 6))));
    return {
      files: { "median.sh": BROKEN },
      check: async ({ run }) => {
        for (const list of [[9, 10], [2, 10, 100, 1], ...lists]) {
          const problem = await problemWith(list, run);
          if (problem !== null) return [problem];
        }
        return [];
      },
      solution: [
        ...commands("cat median.sh", "printf '%s\\n' 10 9 2 | bash median.sh"),
        { tool: "edit_file", arguments: { path: "median.sh", old_text: "<(sort)", new_text: "<(sort -n)" } },
        {
          tool: "edit_file",
          arguments: {
            path: "median.sh",
            old_text: "numbers[count / 2] + numbers[count / 2 + 1]",
            new_text: "numbers[count / 2 - 1] + numbers[count / 2]",
          },
        },
      ],
    };
  },
};

async function problemWith(list: readonly number[], run: ExerciseResult["run"]): Promise<string | null> {
  const { output, exitCode } = await run(`printf '%s\\n' ${list.join(" ")} | bash median.sh`);
  return exitCode === 0 && output === `${medianOf(list)}\n` ? null : `median.sh is wrong for a list of ${list.length} integers`;
}

function medianOf(list: readonly number[]): number {
  const sorted = list.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1] as number, sorted[Math.floor(sorted.length / 2)] as number];
  return Math.floor((low + high) / 2);
}
