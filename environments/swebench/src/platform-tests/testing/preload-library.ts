/**
 * A shared library for x86-64 that prints a text on standard output and ends the program, as soon as it is loaded: for the file
 * /etc/ld.so.preload. Written by hand, because the images have no compiler.
 */
export function preloadLibrary(text: string): Buffer {
  const message = Buffer.from(text);
  const code = Buffer.concat([
    Buffer.from("b801000000", "hex"), // mov eax, 1 (write)
    Buffer.from("bf01000000", "hex"), // mov edi, 1
    Buffer.from("488d3513000000", "hex"), // lea rsi, [rip + 19]: the text, right after the code
    bytes4(0xba, message.length), // mov edx, length
    Buffer.from("0f05", "hex"), // syscall
    Buffer.from("b8e7000000", "hex"), // mov eax, 231 (exit_group)
    Buffer.from("31ff", "hex"), // xor edi, edi
    Buffer.from("0f05", "hex"), // syscall
  ]);
  // Offset of the text from the end of the instruction that loads its address.
  code.writeUInt32LE(code.length - 17, 13);
  const symbols = Buffer.alloc(24);
  const names = Buffer.alloc(8);
  const hash = words4(1, 1, 0, 0);
  const at = { symbols: HEADERS, names: HEADERS + 24, hash: HEADERS + 32, code: HEADERS + 48 };
  const dynamicAt = align8(at.code + code.length + message.length);
  const entries: [tag: number, value: number][] = [
    [4, at.hash], // DT_HASH
    [5, at.names], // DT_STRTAB
    [6, at.symbols], // DT_SYMTAB
    [10, names.length], // DT_STRSZ
    [11, 24], // DT_SYMENT
    [12, at.code], // DT_INIT
    [0, 0],
  ];
  const dynamic = words8(...entries.flat());
  const size = dynamicAt + dynamic.length;
  const file = Buffer.alloc(size);
  Buffer.concat([header(), segment(1, 7, 0, size, 0x1000), segment(2, 6, dynamicAt, dynamic.length, 8)]).copy(file);
  Buffer.concat([symbols, names, hash, code, message]).copy(file, at.symbols);
  dynamic.copy(file, dynamicAt);
  return file;
}

/** The header of the file, and of its two segments. */
const HEADERS = 64 + 2 * 56;

function header(): Buffer {
  const elf = Buffer.alloc(64);
  Buffer.from("7f454c46020101", "hex").copy(elf);
  elf.writeUInt16LE(3, 16); // a shared library
  elf.writeUInt16LE(62, 18); // for x86-64
  elf.writeUInt32LE(1, 20);
  elf.writeUInt32LE(64, 32); // where the headers of segments are
  elf.writeUInt16LE(64, 52);
  elf.writeUInt16LE(56, 54);
  elf.writeUInt16LE(2, 56);
  elf.writeUInt16LE(64, 58);
  return elf;
}

function segment(type: number, flags: number, offset: number, size: number, alignment: number): Buffer {
  return Buffer.concat([words4(type, flags), words8(offset, offset, offset, size, size, alignment)]);
}

function bytes4(opcode: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([opcode]), words4(value)]);
}

function words4(...values: readonly number[]): Buffer {
  const words = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    words.writeUInt32LE(value, 4 * i);
  });
  return words;
}

function words8(...values: readonly number[]): Buffer {
  const words = Buffer.alloc(8 * values.length);
  values.forEach((value, i) => {
    words.writeBigUInt64LE(BigInt(value), 8 * i);
  });
  return words;
}

function align8(value: number): number {
  return Math.ceil(value / 8) * 8;
}
