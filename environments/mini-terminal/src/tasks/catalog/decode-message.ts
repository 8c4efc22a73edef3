import { gzipSync } from "node:zlib";
import { commands, type TerminalTask } from "../task.ts";
import { fileProblems } from "../tree.ts";

export const decodeMessage: TerminalTask = {
  id: "decode-message",
  split: "train",
  instruction: "message.b64 is a text that was compressed with gzip and then encoded in base64. Decode it to message.txt.",
  begin: (random) => {
    const message = Array.from({ length: 20 }, () => `${random.words(6)}.\n`).join("");
    const encoded = gzipSync(message).toString("base64").replace(/.{76}/g, "$&\n");
    return {
      files: { "message.b64": `${encoded.trimEnd()}\n` },
      check: ({ folder }) => fileProblems(folder, "message.txt", message),
      solution: commands("base64 -d message.b64 | gzip -d > message.txt"),
    };
  },
};
