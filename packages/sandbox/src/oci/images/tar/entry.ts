export type { TarEntry, TarType } from "@aenv/contract";
