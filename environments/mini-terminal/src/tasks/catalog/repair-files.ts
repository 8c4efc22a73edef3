import { createHash } from "node:crypto";
import { commands, type TerminalTask } from "../task.ts";
import { fileProblems, treeProblems } from "../tree.ts";

export const repairFiles: TerminalTask = {
  id: "repair-files",
  split: "test",
  instruction:
    "SHA256SUMS has the checksums of the files below data. Some of these files are damaged or missing. Replace them by their copies below backup, which has the same structure, and write the paths of the replaced files to damaged.txt, as they are in SHA256SUMS, one per line, in byte order. The copies of other files in backup are old: do not use them.",
  begin: (random) => {
    const paths = Array.from(
      { length: 24 },
      (_, at) => `${random.pick(["", "maps/", "maps/south/", "texts/"])}${random.words(1)}-${at}.dat`,
    );
    const good: Record<string, string> = {};
    const files: Record<string, string> = {};
    const damaged: string[] = [];
    for (const [at, path] of paths.entries()) {
      const content = `${random.hex(200)}\n`;
      good[`data/${path}`] = content;
      const fate = at < 2 ? "damaged" : random.pick(["good", "good", "damaged", "missing"]);
      if (fate !== "good") damaged.push(`data/${path}`);
      if (fate !== "missing") files[`data/${path}`] = fate === "good" ? content : `${content.slice(0, 100)}x${content.slice(101)}`;
      files[`backup/${path}`] = fate === "good" ? `old ${content}` : content;
    }
    const sums = Object.entries(good).map(([path, content]) => `${createHash("sha256").update(content).digest("hex")}  ${path}\n`);
    files.SHA256SUMS = sums.join("");
    return {
      files,
      check: async ({ folder }) => [
        ...(await treeProblems(folder, "data", good)),
        ...(await fileProblems(folder, "damaged.txt", `${damaged.sort().join("\n")}\n`)),
      ],
      solution: commands(
        "sha256sum --check SHA256SUMS 2>/dev/null | awk -F': ' '$2 != \"OK\" { print $1 }' | LC_ALL=C sort > damaged.txt",
        `while IFS= read -r path; do mkdir -p "$(dirname "$path")" && cp "backup/\${path#data/}" "$path"; done < damaged.txt; sha256sum --quiet --check SHA256SUMS`,
      ),
    };
  },
};
