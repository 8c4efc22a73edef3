import { bool, date, datetime, list, member, nullable, number, text, withDefault } from "../../python/model/field-types.ts";
import { type Instance, model } from "../../python/model/model.ts";
import { PyDate } from "../../python/values/datetime.ts";
import { enumeration } from "../../python/values/enums.ts";
import { float } from "../../python/values/values.ts";

const options = { module: "tau2.domains.telecom.data_model", extra: "forbid" } as const;

const DeviceType = enumeration("DeviceType", { PHONE: "phone", ROUTER: "router", TABLET: "tablet", WATCH: "watch", OTHER: "other" });

export const LineStatus = enumeration("LineStatus", {
  ACTIVE: "Active",
  SUSPENDED: "Suspended",
  PENDING_ACTIVATION: "Pending Activation",
  CLOSED: "Closed",
});

export const BillStatus = enumeration("BillStatus", {
  DRAFT: "Draft",
  ISSUED: "Issued",
  AWAITING_PAYMENT: "Awaiting Payment",
  PAID: "Paid",
  OVERDUE: "Overdue",
  DISPUTED: "Disputed",
});

const PaymentMethodType = enumeration("PaymentMethodType", { CREDIT_CARD: "Credit Card", DEBIT_CARD: "Debit Card", PAYPAL: "PayPal" });

const AccountStatus = enumeration("AccountStatus", {
  ACTIVE: "Active",
  SUSPENDED: "Suspended",
  PENDING_VERIFICATION: "Pending Verification",
  CLOSED: "Closed",
});

const Address = model("Address", { street: text, city: text, state: text, zip_code: text }, options);

export const Plan = model(
  "Plan",
  { plan_id: text, name: text, data_limit_gb: number, price_per_month: number, data_refueling_price_per_gb: number },
  options,
);

export const Device = model(
  "Device",
  {
    device_id: text,
    device_type: member(DeviceType),
    model: text,
    imei: withDefault(nullable(text), null),
    is_esim_capable: bool,
    activated: withDefault(bool, false),
    activation_date: withDefault(nullable(datetime), null),
    last_esim_transfer_date: withDefault(nullable(datetime), null),
  },
  options,
);

export const Line = model(
  "Line",
  {
    line_id: text,
    phone_number: text,
    status: withDefault(member(LineStatus), LineStatus.PENDING_ACTIVATION),
    plan_id: text,
    device_id: withDefault(nullable(text), null),
    data_used_gb: withDefault(number, float(0)),
    data_refueling_gb: withDefault(number, float(0)),
    roaming_enabled: withDefault(bool, false),
    contract_end_date: withDefault(nullable(date), null),
    last_plan_change_date: withDefault(nullable(date), null),
    last_sim_replacement_date: withDefault(nullable(date), null),
    suspension_start_date: withDefault(nullable(date), null),
  },
  options,
);

export const LineItem = model("LineItem", { description: text, amount: number, date, item_type: text }, options);

export const Bill = model(
  "Bill",
  {
    bill_id: text,
    customer_id: text,
    period_start: date,
    period_end: date,
    issue_date: date,
    total_due: number,
    due_date: date,
    line_items: withDefault(list(LineItem), () => []),
    status: withDefault(member(BillStatus), BillStatus.DRAFT),
  },
  options,
);

const PaymentMethod = model(
  "PaymentMethod",
  { method_type: member(PaymentMethodType), account_number_last_4: text, expiration_date: text },
  options,
);

export const Customer = model(
  "Customer",
  {
    customer_id: text,
    full_name: text,
    date_of_birth: text,
    email: text,
    phone_number: text,
    address: Address,
    account_status: withDefault(member(AccountStatus), AccountStatus.PENDING_VERIFICATION),
    payment_methods: withDefault(list(PaymentMethod), () => []),
    line_ids: withDefault(list(text), () => []),
    bill_ids: withDefault(list(text), () => []),
    // Defaults are not converted, so this default stays a date.
    created_at: withDefault(datetime, new PyDate(2025, 1, 1)),
    last_extension_date: withDefault(nullable(date), null),
    goodwill_credit_used_this_year: withDefault(number, float(0)),
  },
  options,
);

export const TelecomDb = model(
  "TelecomDB",
  {
    plans: withDefault(list(Plan), () => []),
    customers: withDefault(list(Customer), () => []),
    lines: withDefault(list(Line), () => []),
    bills: withDefault(list(Bill), () => []),
    devices: withDefault(list(Device), () => []),
  },
  options,
);

export type Plan = Instance<typeof Plan>;
export type Device = Instance<typeof Device>;
export type Line = Instance<typeof Line>;
export type Bill = Instance<typeof Bill>;
export type Customer = Instance<typeof Customer>;
export type TelecomDb = Instance<typeof TelecomDb>;
