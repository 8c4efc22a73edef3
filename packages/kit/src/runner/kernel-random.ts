// A copy of a process with its memory has the state of V8's and of OpenSSL's random generators too, so both processes would go on with the
// same numbers, and neither generator can be seeded from JavaScript. The kernel's generator differs in each copy. Here the functions of
// Node that return random numbers are replaced by such that use it.
//
// The functions are replaced before any code of an environment is loaded, so that it cannot have kept the others.

type Native = (this: unknown, ...args: unknown[]) => unknown;
type Bytes = ArrayBuffer | ArrayBufferView;

export interface KernelRandom {
  /** `Math.random` begins with another seed. */
  reseed(): void;
}

/** Replaces `Math.random` and the random functions of node:crypto and of the Web Crypto API, for the life of this process. */
export function useKernelRandom(): KernelRandom {
  const crypto = process.getBuiltinModule("node:crypto");
  const web = Object.getPrototypeOf(globalThis.crypto) as object;
  const kernel = new Kernel();
  replace(crypto, "randomBytes", (native) => filled(native, kernel, () => []));
  for (const old of ["prng", "pseudoRandomBytes", "rng"]) Object.defineProperty(crypto, old, { value: crypto.randomBytes });
  for (const name of ["randomFill", "randomFillSync"]) replace(crypto, name, (native) => filled(native, kernel, (args) => args));
  replace(crypto, "randomInt", (native) => withResult(native, (_, [min, max]) => kernel.integer(min as number, max)));
  for (const owner of [crypto, web]) replace(owner, "randomUUID", (native) => withResult(native, () => kernel.uuid()));
  // The time and the counter stay.
  if ("randomUUIDv7" in crypto)
    replace(crypto, "randomUUIDv7", (native) => withResult(native, (uuid) => `${uuid}`.slice(0, 19) + kernel.uuid().slice(19)));
  replace(web, "getRandomValues", (native) => filled(native, kernel, () => []));
  const numbers = new Numbers(kernel);
  Math.random = () => numbers.next();
  // Named imports see the new functions.
  process.getBuiltinModule("node:module").syncBuiltinESMExports();
  return numbers;
}

/** Calls the native function, which checks the arguments, and changes its result, also that of a callback. */
function withResult(native: Native, change: (result: unknown, args: unknown[]) => unknown): Native {
  return function (this: unknown, ...args) {
    const callback = args.at(-1);
    if (typeof callback !== "function") return change(native.apply(this, args), args);
    const given = args.slice(0, -1);
    return native.call(this, ...given, (error: Error | null, result: unknown) => {
      callback(error, ...(error ? [] : [change(result, given)]));
    });
  };
}

/** The same for a function that returns bytes, all or the part that `place` names filled. */
function filled(native: Native, kernel: Kernel, place: (args: unknown[]) => unknown[]): Native {
  return withResult(native, (bytes, args) => {
    kernel.fill(part(bytes as Bytes, place(args)));
    return bytes;
  });
}

function replace(owner: object, name: string, make: (native: Native) => Native): void {
  const native = Reflect.get(owner, name) as Native;
  const made = make(native);
  // Its name and length, and how `promisify` reads it.
  Object.defineProperties(made, Object.getOwnPropertyDescriptors(native));
  Object.defineProperty(owner, name, { ...Object.getOwnPropertyDescriptor(owner, name), value: made });
}

/** What `randomFill` fills: offset and size count elements. */
function part(bytes: Bytes, [, offset, size]: readonly unknown[]): Uint8Array {
  const isView = ArrayBuffer.isView(bytes);
  const width = (bytes as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
  const start = typeof offset === "number" ? offset * width : 0;
  const length = typeof size === "number" ? size * width : bytes.byteLength - start;
  return isView ? new Uint8Array(bytes.buffer, bytes.byteOffset + start, length) : new Uint8Array(bytes, start, length);
}

const KERNEL = "/dev/urandom";
/** As many different numbers as `randomInt` can return. */
const INTEGERS = 2 ** 48;

class Kernel {
  readonly #fs = process.getBuiltinModule("node:fs");
  readonly #file = this.#fs.openSync(KERNEL, "r");

  fill(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += this.#fs.readSync(this.#file, bytes, at, bytes.length - at, null);
  }

  /** At least 0, or `min`, and less than the other one. */
  integer(first: number, second: unknown): number {
    const [min, max] = typeof second === "number" ? [first, second] : [0, first];
    const range = max - min;
    // The rest would make small numbers more frequent.
    const limit = INTEGERS - (INTEGERS % range);
    const bytes = Buffer.alloc(6);
    for (;;) {
      this.fill(bytes);
      const number = bytes.readUIntBE(0, 6);
      if (number < limit) return min + (number % range);
    }
  }

  uuid(): string {
    const bytes = Buffer.alloc(16);
    this.fill(bytes);
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }
}

/** Numbers from 0 to 1 by xoshiro128**, which is as fast as they are needed. */
class Numbers implements KernelRandom {
  readonly #kernel: Kernel;
  readonly #state = new Uint32Array(4);
  #isStale = true;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  reseed(): void {
    this.#isStale = true;
  }

  next(): number {
    while (this.#isStale) {
      this.#kernel.fill(new Uint8Array(this.#state.buffer));
      // It would stay zero.
      this.#isStale = this.#state.every((word) => word === 0);
    }
    return ((this.#word() >>> 5) * 2 ** 26 + (this.#word() >>> 6)) / 2 ** 53;
  }

  #word(): number {
    const state = this.#state;
    const [a = 0, b = 0, c = 0, d = 0] = state;
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const third = c ^ a;
    const fourth = d ^ b;
    state[0] = a ^ fourth;
    state[1] = b ^ third;
    state[2] = third ^ (b << 9);
    state[3] = rotate(fourth, 11);
    return result;
  }
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
