import { constants, open } from "node:fs/promises";
import { named } from "./paths.ts";

const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** The text of a file of reasonable size. */
export async function readText(path: string, shownPath: string): Promise<string> {
  return named(shownPath, async () => {
    // Without waiting for the other end of a named pipe.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const info = await file.stat();
    if (info.isDirectory()) throw new Error(`'${shownPath}' is a folder; list it with list_files`);
    // A named pipe or a device may have no end.
    if (!info.isFile()) throw new Error(`'${shownPath}' is not a regular file; read it with execute_command`);
    if (info.size > MAX_FILE_BYTES)
      throw new Error(
        `'${shownPath}' has ${info.size} bytes, more than ${MAX_FILE_BYTES}; read a part with execute_command, such as head or sed -n`,
      );
    return decode(await file.readFile(), shownPath);
  });
}

function decode(bytes: Buffer, shownPath: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Error(`'${shownPath}' is not UTF-8 text; look at it with execute_command, such as od -c or base64`, { cause });
  }
}
