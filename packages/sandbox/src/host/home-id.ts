import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The name of this home in labels: random, because several machines and homes can use one daemon. */
export function openHomeId(folder: string): string {
  const file = join(folder, "home-id");
  const part = `${file}.${randomBytes(6).toString("hex")}`;
  writeFileSync(part, randomBytes(6).toString("hex"));
  try {
    // Two servers that start at the same time both use the id that was first.
    linkSync(part, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(part, { force: true });
  }
  return readFileSync(file, "utf8");
}
