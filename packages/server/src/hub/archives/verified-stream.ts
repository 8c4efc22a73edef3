import { createHash } from "node:crypto";
import { Transform } from "node:stream";
import { PlatformError } from "@aenv/contract";

/** Passes bytes through, but holds back the last chunk until the digest of all bytes is verified. */
export class VerifiedStream extends Transform {
  readonly #hash = createHash("sha256");
  readonly #digest: string;
  readonly #onDamage: () => Promise<void>;
  #held: Uint8Array | null = null;

  constructor(digest: string, onDamage: () => Promise<void>) {
    super();
    this.#digest = digest;
    this.#onDamage = onDamage;
  }

  override _transform(chunk: Uint8Array, _: BufferEncoding, done: () => void): void {
    this.#hash.update(chunk);
    if (this.#held !== null) this.push(this.#held);
    this.#held = chunk;
    done();
  }

  override _flush(done: (error?: Error) => void): void {
    if (`sha256:${this.#hash.digest("hex")}` === this.#digest) {
      if (this.#held !== null) this.push(this.#held);
      done();
      return;
    }
    const error = new PlatformError("bundle.damaged", `the stored archive ${this.#digest} is damaged on disk; push it again`);
    this.#onDamage().then(
      () => done(error),
      () => done(error),
    );
  }
}
