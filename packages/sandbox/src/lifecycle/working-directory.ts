import { messageOf } from "@aenv/contract";
import type { InitConnection } from "../init/connection.ts";
import { startFailed } from "./start-errors.ts";

/**
 * Creates the working directory of a sandbox whose image does not contain it, as Docker does: builders leave a directory out of the layers in
 * which nothing was written. One that cannot exist is an error of the start.
 */
export async function createWorkingDirectory(id: string, { files }: Pick<InitConnection, "files">, path: string): Promise<void> {
  if (path === "/") return;
  try {
    await files.mkdir({ path, parents: true });
  } catch (error) {
    throw startFailed(id, `the working directory ${path} cannot be created: ${messageOf(error)}`);
  }
}
