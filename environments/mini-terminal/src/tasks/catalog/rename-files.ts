import { commands, type TerminalTask } from "../task.ts";
import { treeProblems } from "../tree.ts";

export const renameFiles: TerminalTask = {
  id: "rename-files",
  split: "train",
  instruction:
    "The folder photos contains pictures, also in folders inside of it. Rename every file whose name ends in .jpeg or .JPEG so that it ends in .jpg instead. Change nothing else.",
  begin: (random) => {
    const names = Array.from({ length: 30 }, (_, at) => {
      const folder = random.pick(["", "spring/", "spring/at sea/", "winter/"]);
      const ending = at === 0 ? "jpeg" : random.pick(["jpeg", "jpeg", "JPEG", "jpg", "png", "jpeg.txt"]);
      return { stem: `photos/${folder}IMG ${100 + at}`, ending, content: `${random.hex(40)}\n` };
    });
    const files = (end: (ending: string) => string) =>
      Object.fromEntries(names.map(({ stem, ending, content }) => [`${stem}.${end(ending)}`, content]));
    return {
      files: files((ending) => ending),
      check: ({ folder }) =>
        treeProblems(
          folder,
          "photos",
          files((ending) => (ending.toLowerCase() === "jpeg" ? "jpg" : ending)),
        ),
      solution: commands(
        "find photos -type f | wc -l",
        `find photos -type f -iname '*.jpeg' -print0 | while IFS= read -r -d '' file; do mv -- "$file" "\${file%.*}.jpg"; done`,
      ),
    };
  },
};
