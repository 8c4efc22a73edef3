import { valueError } from "@aenv/benchmark";
import { equals, isIn } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { attribute, type PyObject } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import type { Bill, Customer, Device, Line, Plan, TelecomDb } from "./model.ts";

export const getLine = (db: TelecomDb, id: PyValue): Line => first(attribute(db, "lines"), "line_id", id, "Line with ID");
export const getPlan = (db: TelecomDb, id: PyValue): Plan => first(attribute(db, "plans"), "plan_id", id, "Plan with ID");
export const getDevice = (db: TelecomDb, id: PyValue): Device => first(attribute(db, "devices"), "device_id", id, "Device with ID");
export const getBill = (db: TelecomDb, id: PyValue): Bill => first(attribute(db, "bills"), "bill_id", id, "Bill with ID");
export const getCustomer = (db: TelecomDb, id: PyValue): Customer =>
  first(attribute(db, "customers"), "customer_id", id, "Customer with ID");

export const getLineByPhone = (db: TelecomDb, phoneNumber: PyValue): Line =>
  first(attribute(db, "lines"), "phone_number", phoneNumber, "Line with phone number");

/** Finds a customer by the customer's own number or that of one of their lines. */
export function getCustomerByPhone(db: TelecomDb, phoneNumber: PyValue): Customer {
  for (const customer of attribute(db, "customers")) {
    if (equals(customer.phone_number, phoneNumber)) return customer;
    for (const id of customer.line_ids) if (equals(getLine(db, id).phone_number, phoneNumber)) return customer;
  }
  throw valueError(`Customer with phone number ${str(phoneNumber)} not found`);
}

/** A line that must belong to the customer. */
export function getLineOf(db: TelecomDb, customerId: PyValue, lineId: PyValue): Line {
  const customer = getCustomer(db, customerId);
  if (!isIn(lineId, customer.line_ids)) throw valueError(`Line ${str(lineId)} not found for customer ${str(customerId)}`);
  return getLine(db, lineId);
}

export function billsOf(db: TelecomDb, customer: Customer): Bill[] {
  return customer.bill_ids.map((id) => getBill(db, id));
}

/** The first row with that value; a value of another type matches none. */
function first<Row extends PyObject>(rows: readonly Row[], field: keyof Row & string, wanted: PyValue, noun: string): Row {
  const row = rows.find((candidate) => equals(candidate[field] as PyValue, wanted));
  if (row === undefined) throw valueError(`${noun} ${str(wanted)} not found`);
  return row;
}
