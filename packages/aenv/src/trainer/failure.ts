import { Failure } from "../terminal/failure.ts";
import { TrainerError } from "./http.ts";

/** The address of a trainer's server, checked. */
export function trainerUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new Failure(`'${text}' is not the address of a trainer's server`, {
    exit: "usage",
    hint: "Write it as: --url http://127.0.0.1:8080",
  });
}

/** An error of a trainer's server as a failure; `keyOptions` says where its key is given. */
export function asFailure(error: unknown, keyOptions: string | null): unknown {
  if (!(error instanceof TrainerError)) return error;
  const { message, status, cause } = error;
  if (status === null)
    return new Failure(message, {
      exit: "unreachable",
      cause,
      hint: "Is the trainer's server running there? Give its address with --url.",
    });
  if ((status === 401 || status === 403) && keyOptions !== null)
    return new Failure(message, { exit: "denied", cause, hint: `Give the key with ${keyOptions}.` });
  return new Failure(message, { cause });
}
