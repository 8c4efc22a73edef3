import { commands, type TerminalTask } from "../task.ts";
import { treeProblems } from "../tree.ts";

export const movePort: TerminalTask = {
  id: "move-port",
  split: "train",
  instruction:
    "The folder services has .ini files with sections. In the section [server] of each file, change the line 'port = 8080' to 'port = 9090'. Other ports, and lines of other sections, stay as they are.",
  begin: (random) => {
    const section = (name: string) => {
      const lines = [`host = ${random.words(1)}`, `port = ${random.pick(["8080", "8080", "18080", "80800"])}`, `name = ${random.words(2)}`];
      return `[${name}]\n${random.shuffle(lines).join("\n")}\n`;
    };
    const before: Record<string, string> = {};
    const after: Record<string, string> = {};
    for (let at = 0; at < 12; at++) {
      const path = `services/${random.words(1)}-${at}.ini`;
      const parts = random.shuffle(["server", "metrics", "server.tls"]).map(section);
      // At least one file must be changed.
      if (at === 0) parts.push("[server]\nport = 8080\n");
      before[path] = parts.join("\n");
      after[path] = parts.map((part) => (part.startsWith("[server]\n") ? part.replace("port = 8080\n", "port = 9090\n") : part)).join("\n");
    }
    return {
      files: before,
      check: ({ folder }) => treeProblems(folder, "services", after),
      solution: commands(
        "grep -c 'port = 8080' services/*.ini",
        `for file in services/*.ini; do
  awk '/^\\[/ { inside = ($0 == "[server]") } inside && $0 == "port = 8080" { $0 = "port = 9090" } { print }' "$file" > changed && cat changed > "$file"
done
rm changed`,
      ),
    };
  },
};
