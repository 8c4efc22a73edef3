import { readFile } from "node:fs/promises";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { decodeStrict, isList, isObject, type Json, PyError, readJson } from "@aenv/benchmark";
import { type Compressors, parquetReadObjects } from "hyparquet";
import { jsonLines } from "../python/json-lines.ts";
import { type Row, toJson } from "./row.ts";

/** Reads the rows of a `.json`, `.jsonl` or `.parquet` file. */
export async function readRowsFile(path: string): Promise<Row[]> {
  const bytes = await readFile(path);
  if (path.endsWith(".parquet")) return readParquetRows(bytes);
  const text = decodeStrict(bytes, path);
  if (path.endsWith(".jsonl")) return jsonLines(text).map((line, i) => asRow(readJson(line), `line ${i + 1} of ${path}`));
  const list = readJson(text);
  if (!isList(list)) throw new PyError("ValueError", `${path} is not a list of rows`);
  return list.map((row, i) => asRow(row, `row ${i + 1} of ${path}`));
}

/** Files with another name are names of datasets. */
export function isRowsFile(name: string): boolean {
  return /\.(?:json|jsonl|parquet)$/.test(name);
}

export async function readParquetRows(bytes: Uint8Array): Promise<Row[]> {
  const { buffer, byteOffset, byteLength } = bytes;
  const file = (buffer as ArrayBuffer).slice(byteOffset, byteOffset + byteLength);
  const rows = await parquetReadObjects({ file, compressors });
  return rows.map((row) => asRow(toJson(row), "a row of a Parquet file"));
}

/** Pages of Parquet have a MiB or so. */
const MAX_PAGE_BYTES = 2 ** 30;

/** hyparquet itself has Snappy only. */
const compressors: Compressors = {
  GZIP: (input) => gunzipSync(input, { maxOutputLength: MAX_PAGE_BYTES }),
  ZSTD: (input) => zstdDecompressSync(input, { maxOutputLength: MAX_PAGE_BYTES }),
  BROTLI: (input) => brotliDecompressSync(input, { maxOutputLength: MAX_PAGE_BYTES }),
};

function asRow(value: Json, where: string): Row {
  if (!isObject(value)) throw new PyError("ValueError", `${where} is not an object`);
  return value;
}
