import { isPlatformError, PlatformError } from "@aenv/contract";
import Database from "better-sqlite3";

/** A SQLite error with the file and the next step. */
export function explain(error: unknown, path: string): Error {
  if (isPlatformError(error)) return error;
  if (error instanceof TypeError && error.message === "The database connection is not open") {
    return new PlatformError("store.unavailable", `the store ${path} is closed`);
  }
  if (!(error instanceof Error)) return new Error(String(error));
  if ("syscall" in error) return cannotOpen(path, error.message, error);
  if (!(error instanceof Database.SqliteError)) return error;
  const reported = `${error.message} (${error.code})`;
  const is = (...codes: readonly string[]) => codes.some((code) => error.code === code || error.code.startsWith(`${code}_`));
  if (is("SQLITE_CORRUPT", "SQLITE_NOTADB")) return damaged(path, reported, error);
  if (is("SQLITE_BUSY", "SQLITE_LOCKED")) {
    return unavailable(`${path} is locked by another process: stop that process, or try again`, error);
  }
  if (is("SQLITE_FULL")) return unavailable(`the disk of ${path} is full: free some space, then try again`, error);
  if (is("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")) {
    return cannotOpen(path, reported, error);
  }
  if (is("SQLITE_IOERR")) return unavailable(`reading or writing ${path} failed: ${reported}. Check the disk`, error);
  return new PlatformError("internal", `${path}: ${reported}`, { cause: error });
}

export function damaged(path: string, reported: string, cause?: unknown): PlatformError {
  return new PlatformError(
    "store.damaged",
    `${path} is damaged or not a SQLite database: ${reported}. Stop all servers that use it and restore a backup, or recover what can be ` +
      `read with 'sqlite3 ${path} .recover | sqlite3 saved.db', or move it away to start with an empty store`,
    { cause },
  );
}

function cannotOpen(path: string, reported: string, cause: unknown): PlatformError {
  return unavailable(`cannot open ${path} for writing: ${reported}. Choose a file in a folder that this user can write to`, cause);
}

function unavailable(message: string, cause: unknown): PlatformError {
  return new PlatformError("store.unavailable", message, { cause });
}
