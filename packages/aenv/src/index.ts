// The whole of both packages, so that what they gain is here too; a name that both export would fail the type check.
export * from "@aenv/kit";
export * from "@aenv/sdk";
