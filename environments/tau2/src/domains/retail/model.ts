import { table } from "../../core/database/table.ts";
import { bool, dict, list, literal, nullable, number, text, union, withDefault } from "../../python/model/field-types.ts";
import { type Instance, model } from "../../python/model/model.ts";

const module = "tau2.domains.retail.data_model";

export const Variant = model("Variant", { item_id: text, options: dict(text), available: bool, price: number }, { module });

export const Product = model("Product", { name: text, product_id: text, variants: dict(Variant) }, { module });

export const UserName = model("UserName", { first_name: text, last_name: text }, { module });

export const UserAddress = model(
  "UserAddress",
  { address1: text, address2: text, city: text, country: text, state: text, zip: text },
  { module },
);

export const CreditCard = model("CreditCard", { source: literal("credit_card"), id: text, brand: text, last_four: text }, { module });
export const Paypal = model("Paypal", { source: literal("paypal"), id: text }, { module });
export const GiftCard = model("GiftCard", { source: literal("gift_card"), id: text, balance: number }, { module });

export const User = model(
  "User",
  {
    user_id: text,
    name: UserName,
    address: UserAddress,
    email: text,
    payment_methods: dict(union(CreditCard, Paypal, GiftCard)),
    orders: list(text),
  },
  { module },
);

export const OrderFulfillment = model("OrderFullfilment", { tracking_id: list(text), item_ids: list(text) }, { module });

export const OrderItem = model(
  "OrderItem",
  { name: text, product_id: text, item_id: text, price: number, options: dict(text) },
  { module },
);

export const OrderPayment = model(
  "OrderPayment",
  { transaction_type: literal("payment", "refund"), amount: number, payment_method_id: text },
  { module },
);

export const Order = model(
  "Order",
  {
    order_id: text,
    user_id: text,
    address: UserAddress,
    items: list(OrderItem),
    status: literal("processed", "pending", "pending (item modified)", "delivered", "cancelled", "exchange requested", "return requested"),
    fulfillments: list(OrderFulfillment),
    payment_history: list(OrderPayment),
    cancel_reason: withDefault(nullable(literal("no longer needed", "ordered by mistake")), null),
    exchange_items: withDefault(nullable(list(text)), null),
    exchange_new_items: withDefault(nullable(list(text)), null),
    exchange_payment_method_id: withDefault(nullable(text), null),
    exchange_price_difference: withDefault(nullable(number), null),
    return_items: withDefault(nullable(list(text)), null),
    return_payment_method_id: withDefault(nullable(text), null),
  },
  { module },
);

export const RetailDb = model(
  "RetailDB",
  { products: table(Product), users: table(User), orders: table(Order) },
  { module, extra: "forbid" },
);

export type Variant = Instance<typeof Variant>;
export type Product = Instance<typeof Product>;
export type User = Instance<typeof User>;
export type PaymentMethod = Instance<typeof CreditCard> | Instance<typeof Paypal> | Instance<typeof GiftCard>;
export type OrderItem = Instance<typeof OrderItem>;
export type OrderPayment = Instance<typeof OrderPayment>;
export type Order = Instance<typeof Order>;
export type RetailDb = Instance<typeof RetailDb>;
