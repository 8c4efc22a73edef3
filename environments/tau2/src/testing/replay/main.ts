import { replayFile } from "./replay.ts";

const files = process.argv.slice(2);
const dataPath = process.env.TAU2_DATA_DIR ?? "../shared/tau2/data";

if (files.length === 0) {
  console.error("usage: npm run -s tau2:replay -- FILE...\nThe data directory is TAU2_DATA_DIR, or ../shared/tau2/data.");
  process.exitCode = 2;
}
for (const file of files) {
  const tally = await replayFile(file, dataPath);
  console.log(tally.print(file));
  if (!tally.allMatch) process.exitCode = 1;
}
