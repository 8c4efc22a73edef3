import { commands, type TerminalTask } from "../task.ts";
import { fileProblems, treeProblems } from "../tree.ts";

export const splitByDay: TerminalTask = {
  id: "split-by-day",
  split: "test",
  instruction:
    "Each line of events.log begins with a time such as 2026-05-09T12:30:00Z. Split it into one file for each day, by-day/<year>-<month>-<day>.log, with the lines in the order that they have in events.log. Keep events.log.",
  begin: (random) => {
    const days: Record<string, string> = {};
    const lines = Array.from({ length: 250 }, () => {
      const day = `2026-0${random.integer(4, 6)}-${String(random.integer(1, 5)).padStart(2, "0")}`;
      const hour = String(random.integer(0, 23)).padStart(2, "0");
      const line = `${day}T${hour}:00:00Z ${random.words(3)} 2026-01-0${random.integer(1, 9)}\n`;
      const path = `by-day/${day}.log`;
      days[path] = (days[path] ?? "") + line;
      return line;
    });
    const log = lines.join("");
    return {
      files: { "events.log": log },
      check: async ({ folder }) => [...(await treeProblems(folder, "by-day", days)), ...(await fileProblems(folder, "events.log", log))],
      solution: commands("mkdir by-day", `awk '{ print > ("by-day/" substr($0, 1, 10) ".log") }' events.log; ls by-day | wc -l`),
    };
  },
};
