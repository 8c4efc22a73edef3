import { commands, type TerminalTask } from "../task.ts";
import { treeProblems } from "../tree.ts";

export const deduplicate: TerminalTask = {
  id: "deduplicate",
  split: "train",
  instruction:
    "Below the folder inbox, some files have the same content. Of all files with the same content, keep the one whose path comes first in byte order (as LC_ALL=C sort orders them), and delete the others. Change nothing else.",
  begin: (random) => {
    const contents = Array.from({ length: 15 }, () => `${random.hex(32)}\n`);
    const files: Record<string, string> = {};
    for (let at = 0; at < 40; at++) {
      const folder = random.pick(["", "Mail/", "mail/", "mail/2026/", "scans of May/"]);
      files[`inbox/${folder}${random.hex(4)}-${at}.txt`] = random.pick(contents);
    }
    const kept: Record<string, string> = {};
    const seen = new Set<string>();
    for (const path of Object.keys(files).sort()) {
      const content = files[path] as string;
      if (!seen.has(content)) kept[path] = content;
      seen.add(content);
    }
    return {
      files,
      check: ({ folder }) => treeProblems(folder, "inbox", kept),
      solution: commands(
        "declare -A seen",
        `while IFS= read -r file; do
  sum=$(sha256sum < "$file")
  if [[ -n \${seen[$sum]} ]]; then rm -- "$file"; else seen[$sum]=1; fi
done < <(find inbox -type f | LC_ALL=C sort)
echo "\${#seen[@]} files are left"`,
      ),
    };
  },
};
