import { commands, type TerminalTask } from "../task.ts";
import { fileProblems } from "../tree.ts";

const COMPONENTS = ["billing", "catalog", "gateway", "mailer", "search", "storage"];

export const logErrors: TerminalTask = {
  id: "log-errors",
  split: "train",
  instruction:
    "app.log has lines such as '2026-03-04T10:20:30Z ERROR [mailer] message'. Count the lines of the level ERROR for each component. Write counts.txt with one line '<count> <component>' for each component that has such lines, the highest count first, equal counts in alphabetical order.",
  begin: (random) => {
    const counts = new Map<string, number>();
    const lines = Array.from({ length: 600 }, (_, at) => {
      const component = random.pick(COMPONENTS);
      const level = random.pick(["INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
      if (level === "ERROR") counts.set(component, (counts.get(component) ?? 0) + 1);
      // A message that only mentions the word.
      const message = random.integer(0, 9) === 0 ? `last ERROR was ${random.integer(1, 9)} hours ago` : random.words(4);
      return `2026-03-04T${String(10 + Math.floor(at / 60)).padStart(2, "0")}:${String(at % 60).padStart(2, "0")}:00Z ${level} [${component}] ${message}\n`;
    });
    const sorted = [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
    const expected = sorted.map(([component, count]) => `${count} ${component}\n`).join("");
    return {
      files: { "app.log": lines.join("") },
      check: ({ folder }) => fileProblems(folder, "counts.txt", expected),
      solution: commands(
        "head -n 3 app.log",
        `awk '$2 == "ERROR" { n[substr($3, 2, length($3) - 2)]++ } END { for (c in n) print n[c], c }' app.log | LC_ALL=C sort -k1,1nr -k2,2 > counts.txt; cat counts.txt`,
      ),
    };
  },
};
