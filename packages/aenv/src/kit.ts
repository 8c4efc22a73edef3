export * from "@aenv/kit";
