import { attributeError, valueError } from "@aenv/benchmark";
import { text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { equals } from "../../python/equality.ts";
import { attribute } from "../../python/values/objects.ts";
import { typeName } from "../../python/values/types.ts";
import type { PyValue } from "../../python/values/values.ts";
import { editUser, userOf } from "./lookups.ts";
import { type RetailDb, UserAddress } from "./model.ts";
import { address, userId } from "./parameters.ts";

const { read, write } = toolsOf<Side<RetailDb>>();

export const findUserIdByNameZip = read({
  name: "find_user_id_by_name_zip",
  summary: "Look up a user's id by name and zip code; fails if there is no such user.",
  details: "Meant for users who cannot be found by their email address or do not remember it: try that one first.",
  parameters: {
    first_name: text("The user's first name, such as 'John'."),
    last_name: text("The user's last name, such as 'Doe'."),
    zip: text("The zip code of the user's address, such as '12345'."),
  },
  run({ first_name, last_name, zip }, { db }) {
    // As in the reference, a name that is not a string raises only when it is compared.
    for (const { user_id, name, address } of attribute(db, "users").values()) {
      if (lower(name.first_name) === lower(first_name) && lower(name.last_name) === lower(last_name) && equals(address.zip, zip)) {
        return user_id;
      }
    }
    throw valueError("User not found");
  },
});

export const findUserIdByEmail = read({
  name: "find_user_id_by_email",
  summary: "Look up a user's id by email address; fails if there is no such user.",
  parameters: { email: text("The user's email address, such as 'something@example.com'.") },
  run({ email }, { db }) {
    for (const user of attribute(db, "users").values()) {
      if (lower(user.email) === lower(email)) return user.user_id;
    }
    throw valueError("User not found");
  },
});

export const getUserDetails = read({
  name: "get_user_details",
  summary: "Show a user: name, address, email, payment methods and the ids of the orders.",
  parameters: { user_id: userId },
  run: ({ user_id }, { db }) => userOf(db, user_id),
});

export const modifyUserAddress = write({
  name: "modify_user_address",
  summary: "Change a user's default address; orders that were placed already keep theirs.",
  details: "First tell the user what will change, and go on only after a clear yes.",
  parameters: { user_id: userId, ...address },
  run({ user_id, ...parts }, { db }) {
    userOf(db, user_id);
    const changed = UserAddress.create(parts);
    const user = editUser(db, user_id);
    user.address = changed;
    return user;
  },
});

function lower(value: PyValue): string {
  if (typeof value !== "string") throw attributeError(typeName(value), "lower");
  return value.toLowerCase();
}
