import type { Tally } from "./tally.ts";

/** `npm run -s NAME:replay -- FILE...`: prints a tally for each file. The exit code is 0 only if everything matches. */
export async function replayCommand(name: string, replay: (file: string) => Tally | Promise<Tally>, note = ""): Promise<void> {
  const files = process.argv.slice(2);
  if (files.length === 0) {
    console.error(`usage: npm run -s ${name}:replay -- FILE...${note}`);
    process.exitCode = 2;
  }
  for (const file of files) {
    try {
      const tally = await replay(file);
      console.log(tally.print(file));
      if (!tally.allMatch) process.exitCode = 1;
    } catch (error) {
      console.log(`${file}: cannot be read: ${(error as Error).message}`);
      process.exitCode = 1;
    }
  }
}
