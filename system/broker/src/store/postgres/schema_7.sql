-- The queue of each subscription. Messages that wait have the labels of their subscription.
CREATE INDEX deliveries_queue ON deliveries (webhook_id, due_at, position) WHERE completed_at IS NULL;
UPDATE deliveries SET target_labels = (SELECT webhooks.target_labels FROM webhooks WHERE webhooks.id = webhook_id)
  WHERE completed_at IS NULL;
