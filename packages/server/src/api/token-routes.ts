import { fieldLimits, knownFields, PlatformError, roles, text } from "@aenv/contract";
import { z } from "zod";
import type { TokenRow, Tokens } from "../access/tokens.ts";
import * as answers from "./answers.ts";
import { type ApiRoute, bodyLimits, route } from "./route.ts";

const newToken = knownFields({
  /** The original's name for the owner. */
  user: text(fieldLimits.nameLength).optional(),
  owner: text(fieldLimits.nameLength).optional(),
  roles: z.array(z.enum(roles)).default(["publisher", "trainer"]),
  note: text(200).default(""),
  expiresAt: z.iso.datetime().optional(),
  maxInstanceCount: z.number().int().min(1).optional(),
  scopes: z.array(text(fieldLimits.nameLength)).max(100).default([]),
});

export function tokenRoutes(tokens: Tokens): ApiRoute[] {
  return [
    route({
      method: "POST",
      path: "/token",
      summary: "Create a token; only this response contains it",
      answer: answers.tokens.made,
      audited: { event: "token.created", of: (data) => [(data as TokenRow).id] },
      tag: "access",
      roles: ["admin"],
      body: newToken,
      maxBodyBytes: bodyLimits.fields,
      handle: async ({ body }) => {
        const owner = body.owner ?? body.user;
        if (owner === undefined) throw new PlatformError("request.invalid", "Invalid request parameters: owner is missing");
        const { token, row } = await tokens.create({
          owner,
          roles: body.roles,
          note: body.note,
          scopes: body.scopes,
          ...(body.expiresAt !== undefined && { expiresAt: new Date(body.expiresAt) }),
          ...(body.maxInstanceCount !== undefined && { maxInstances: body.maxInstanceCount }),
        });
        return { ...shown(row), token };
      },
    }),
    route({
      method: "GET",
      path: "/token",
      summary: "List tokens, without their secrets",
      answer: answers.tokens.some,
      tag: "access",
      roles: ["admin"],
      query: z.object({ owner: z.string().optional() }),
      handle: async ({ query }) => (await tokens.list(query.owner)).map(shown),
    }),
    route({
      method: "DELETE",
      path: "/token/:id",
      summary: "Revoke a token",
      answer: answers.deleted,
      audited: { event: "token.revoked", of: (_, { params }) => [params.id] },
      tag: "access",
      roles: ["admin"],
      params: z.object({ id: z.string() }),
      handle: async ({ params }) => {
        if (!(await tokens.revoke(params.id))) throw new PlatformError("access.token_not_found", `Token does not exist: '${params.id}'`);
        return "Deleted successfully";
      },
    }),
    route({
      method: "GET",
      path: "/whoami",
      summary: "The owner and the roles of the caller's token",
      answer: answers.tokens.whoami,
      tag: "access",
      roles: ["admin", "publisher", "trainer", "agent"],
      handle: async ({ caller }) => ({ owner: caller.owner, roles: [...caller.roles], token: caller.tokenId }),
    }),
  ];
}

function shown(row: TokenRow) {
  const { hash: _, maxInstances, ...rest } = row;
  return { ...rest, user: row.owner, maxInstanceCount: maxInstances };
}
