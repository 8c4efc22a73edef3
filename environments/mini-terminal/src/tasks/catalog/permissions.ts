import { commands, type TerminalTask } from "../task.ts";
import { treeProblems } from "../tree.ts";

export const permissions: TerminalTask = {
  id: "permissions",
  split: "train",
  instruction:
    "Set the permissions of all files below the folder site: 600 for every file below site/private, whatever its name; 755 for all other files whose names end in .sh; 644 for the rest. Do not change the files themselves.",
  begin: (random) => {
    const names = Array.from({ length: 30 }, (_, at) => {
      const folder = random.pick(["", "bin/", "pages/", "private/", "private/keys/"]);
      return `site/${folder}${random.pick(["a", "b", "c d"])}${at}${random.pick([".sh", ".html", ".sh.txt", ""])}`;
    });
    const wanted = (path: string) => (path.startsWith("site/private/") ? 0o600 : path.endsWith(".sh") ? 0o755 : 0o644);
    const contents = names.map((path) => [path, `${random.hex(20)}\n`] as const);
    const expected = Object.fromEntries(contents.map(([path, content]) => [path, { content, mode: wanted(path) }]));
    // No file has the right mode at the beginning.
    const files = Object.fromEntries(
      contents.map(([path, content]) => {
        const others = [0o600, 0o640, 0o644, 0o755, 0o777].filter((mode) => mode !== wanted(path));
        return [path, { content, mode: random.pick(others) }];
      }),
    );
    return {
      files,
      check: ({ folder }) => treeProblems(folder, "site", expected),
      solution: commands(
        "find site -type f -exec chmod 644 {} +",
        "find site -type f -name '*.sh' -exec chmod 755 {} +",
        "find site/private -type f -exec chmod 600 {} +",
      ),
    };
  },
};
