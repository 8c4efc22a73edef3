import { PlatformError } from "@aenv/contract";

/**
 * Why an image cannot be had. The message of each kind but `unreachable` is for the owner of the sandbox. That of `unreachable` is for the
 * operator only: it would tell which ports of which machines are open, and what answers there.
 */
export type FailureKind =
  /** The server does not connect to the registry, or to where it sends its clients. */
  | "refused"
  /** The registry answered as one: it does not have the image, or not for these credentials. */
  | "denied"
  /** The image is damaged, too large, or for another machine. */
  | "invalid"
  /** The disk of the server has no room for the image. */
  | "full"
  /** No connection, no answer, or one that is not a registry's. */
  | "unreachable";

export class RegistryFailure extends Error {
  override readonly name = "RegistryFailure";
  readonly kind: FailureKind;
  /** The same request may succeed in a moment. */
  readonly isTemporary: boolean;

  constructor(kind: FailureKind, message: string, options: { readonly cause?: unknown; readonly isTemporary?: boolean } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = kind;
    this.isTemporary = options.isTemporary ?? false;
  }
}

/** Advice for an image that was built and not pushed. */
export const LOAD_HINT = "; if it is in no registry, load it on the server's machine: aenv image load SOURCE --name NAME";

/** The same for all that went wrong with the connection, whatever it was. */
const NO_ANSWER = "its registry could not be reached, or did not answer as a registry; the server's log has the details";

/** The registry says that it does not have the image, or does not give it to the server. Registries mix these up on purpose. */
export const NOT_THERE = "its registry does not have it, or wants other credentials";
export const TOO_MANY_REQUESTS = "its registry answers no more requests of this server for now";

/** The error of a pull for the owner of the sandbox. The cause of a connection that failed is not in it. */
export function pullError(image: string, failure: RegistryFailure): PlatformError {
  const { kind } = failure;
  if (kind === "refused") return imageUnavailable(`the image '${image}' is refused: ${failure.message}`);
  const reason = kind === "unreachable" ? NO_ANSWER : failure.message;
  const hint = kind === "denied" || kind === "unreachable" ? LOAD_HINT : "";
  const message = `the image '${image}' could not be pulled: ${reason}${hint}`;
  // Another attempt may succeed if the registry was not reached, or this server had no room.
  return kind === "unreachable" || kind === "full" ? new PlatformError("sandbox.start_failed", message) : imageUnavailable(message);
}

/** The error of an image that this server will not have, however often it is asked for: whoever named it is to name another. */
export function imageUnavailable(message: string): PlatformError {
  return new PlatformError("sandbox.image_unavailable", message);
}

/**
 * The one reason for pulls by Docker or a node that fail. These say more, but they follow redirects themselves, so their messages may quote
 * what an internal server answered.
 */
export const DAEMON_FAILURE = "its registry does not have it, wants other credentials, or did not answer";
