import { type ErrorCode, PlatformError } from "@aenv/contract";
import { isInitError } from "@aenv/sandbox";

/** What the words of the init mean for a client; any other word is a failure of the sandbox. */
const codes: Readonly<Record<string, ErrorCode>> = {
  no_program: "command.not_started",
  no_cwd: "command.not_started",
  no_user: "command.not_started",
  not_started: "command.not_started",
  no_process: "command.not_found",
  not_running: "command.not_found",
  replaced: "command.replaced",
  no_terminal: "request.invalid",
  port_in_use: "request.invalid",
  invalid_request: "request.invalid",
  invalid_archive: "request.invalid",
  not_found: "file.not_found",
  exists: "file.conflict",
  not_empty: "file.conflict",
  not_a_directory: "file.conflict",
  is_a_directory: "file.conflict",
  not_a_file: "file.conflict",
  too_many_links: "file.conflict",
  denied: "file.denied",
  outside_root: "file.denied",
  no_space: "file.no_space",
  too_many_streams: "quota.exceeded",
};

/** An error of the init as the platform's; any other error unchanged. */
export function fromInit(error: unknown): unknown {
  if (!isInitError(error)) return error;
  const code = codes[error.code] ?? "sandbox.lost";
  return new PlatformError(code, error.message, { cause: error, details: { reason: error.code } });
}

/** The result of a request to the init. */
export async function answered<T>(request: Promise<T>): Promise<T> {
  return request.catch((error: unknown) => {
    throw fromInit(error);
  });
}
