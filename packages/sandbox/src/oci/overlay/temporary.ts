import { chmod, lstat, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type OverlayRoot, rootPath } from "./root.ts";

/**
 * gVisor mounts a file system in memory at an empty /tmp, whose files would be missing in a snapshot of files. So it is not empty. No program
 * runs yet that could exchange the folder for a link.
 */
export async function keepTemporary(root: OverlayRoot): Promise<void> {
  const folder = join(rootPath(root), "tmp");
  const found = await lstat(folder).catch(() => null);
  if (found === null) await mkdir(folder);
  else if (!found.isDirectory()) return;
  if (found === null) await chmod(folder, 0o1777);
  await writeFile(join(folder, ".keep"), "", { flag: "wx" }).catch(() => undefined);
}
