import { isPlatformError, PlatformError } from "@aenv/contract";
import Database from "better-sqlite3";

/** What SQLite reports, with the file and what to do about it. */
export function explain(error: unknown, path: string): Error {
  if (isPlatformError(error)) return error;
  if (error instanceof TypeError && error.message === "The database connection is not open") {
    return new PlatformError("store.unavailable", `the store ${path} is closed`);
  }
  if (!(error instanceof Error)) return new Error(String(error));
  if ("syscall" in error) return cannotOpen(path, error.message, error);
  if (!(error instanceof Database.SqliteError)) return error;
  const told = `${error.message} (${error.code})`;
  const is = (...codes: readonly string[]) => codes.some((code) => error.code === code || error.code.startsWith(`${code}_`));
  if (is("SQLITE_CORRUPT", "SQLITE_NOTADB")) return damaged(path, told, error);
  if (is("SQLITE_BUSY", "SQLITE_LOCKED")) {
    return unavailable(`another process holds ${path} and does not let go: find it and end it, or try again`, error);
  }
  if (is("SQLITE_FULL")) return unavailable(`no room left on the disk of ${path}: free some, then try again`, error);
  if (is("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")) {
    return cannotOpen(path, told, error);
  }
  if (is("SQLITE_IOERR")) return unavailable(`reading or writing ${path} failed: ${told}. Check the disk`, error);
  return new PlatformError("internal", `${path}: ${told}`, { cause: error });
}

export function damaged(path: string, told: string, cause?: unknown): PlatformError {
  return new PlatformError(
    "store.damaged",
    `${path} is damaged or no SQLite database: ${told}. Stop all servers that use it and put a backup in its place, or save what can be ` +
      `read with 'sqlite3 ${path} .recover | sqlite3 saved.db', or move it away to begin anew`,
    { cause },
  );
}

function cannotOpen(path: string, told: string, cause: unknown): PlatformError {
  return unavailable(`cannot open ${path} for writing: ${told}. Name a file in a folder that this user may write in`, cause);
}

function unavailable(message: string, cause: unknown): PlatformError {
  return new PlatformError("store.unavailable", message, { cause });
}
