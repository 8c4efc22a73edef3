import { replayFile } from "./replay.ts";

const files = process.argv.slice(2);

if (files.length === 0) {
  console.error("usage: npm run -s swebench:replay -- FILE...");
  process.exitCode = 2;
}
for (const file of files) {
  try {
    const tally = replayFile(file);
    console.log(tally.print(file));
    if (!tally.allMatch) process.exitCode = 1;
  } catch (error) {
    console.log(`${file}: cannot be read: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
