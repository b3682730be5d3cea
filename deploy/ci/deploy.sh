#!/bin/sh
# Deploys a file as a stack, and waits until it is ready on every cluster: deploy.sh STACK FILE AGENT...
#
# SINDRI_BROKER has the URL of the broker, and SINDRI_KEY or SINDRI_KEY_FILE the key of a generator. The agents must be
# registered with the generator; an administrator does so once, with sindri generator register. The script can be run again:
# a stack that exists stays, and unchanged content is not submitted. DEPLOY_TIMEOUT is the longest wait, such as 15m.
#
# Standard output is the submitted revision in JSON, with the result and the state of each cluster; standard error is the
# progress. Exit codes: 0 ready, 1 failed, 2 invalid (the file, the arguments or the key), 3 replaced by another submission,
# 4 not ready in time.
set -eu

if [ $# -lt 3 ]; then
  echo "usage: deploy.sh STACK FILE AGENT..." >&2
  exit 2
fi
stack=$1
file=$2
shift 2

agents=$#
for agent in "$@"; do
  set -- "$@" --target "$agent"
done
shift "$agents"

exec sindri apply "$stack" --file "$file" --create "$@" --wait --timeout "${DEPLOY_TIMEOUT:-10m}" --output json
