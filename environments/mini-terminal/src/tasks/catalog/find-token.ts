import { commands, type TerminalTask } from "../task.ts";
import { fileProblems } from "../tree.ts";

export const findToken: TerminalTask = {
  id: "find-token",
  split: "train",
  instruction:
    "Exactly one file below the folder config sets a token, with a line 'token=<value>' that is not a comment. Write the value, and nothing else, to answer.txt.",
  begin: (random) => {
    const token = random.hex(24);
    const chosen = random.integer(0, 59);
    const files: Record<string, string> = {};
    for (let at = 0; at < 60; at++) {
      const folder = random.pick(["base", "base/hosts", "extra", "extra/old/2025", "extra/old/2026"]);
      const lines = Array.from({ length: 8 }, () => `${random.pick(["name", "mode", "path", "retries"])}=${random.words(1)}`);
      if (random.integer(0, 2) === 0) lines.push(`# token=${random.hex(24)}`, `token_file=/run/${random.words(1)}`);
      if (at === chosen) lines.push(`token=${token}`);
      files[`config/${folder}/${at}.conf`] = `${random.shuffle(lines).join("\n")}\n`;
    }
    return {
      files,
      check: async ({ folder }) => {
        const withBreak = await fileProblems(folder, "answer.txt", `${token}\n`);
        return withBreak.length === 0 ? [] : fileProblems(folder, "answer.txt", token);
      },
      solution: commands("cd config", "grep -rh '^token=' . | cut -d= -f2 > ../answer.txt; cd ..; wc -c < answer.txt"),
    };
  },
};
