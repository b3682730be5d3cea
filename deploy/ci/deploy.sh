#!/bin/sh
# Deploys a file as a stack, with the key of a generator: deploy.sh STACK FILE AGENT...
#
# SINDRI_BROKER has the URL of the broker, and SINDRI_KEY or SINDRI_KEY_FILE the key. The agents must be registered with the
# generator; an administrator does so once, with sindri generator register. It can be run again: what exists already stays.
set -eu

if [ $# -lt 2 ]; then
  echo "usage: deploy.sh STACK FILE AGENT..." >&2
  exit 2
fi
stack=$1
file=$2
shift 2

sindri whoami
if ! sindri stack list --output name | grep --quiet --fixed-strings --line-regexp "stack/$stack"; then
  sindri stack create "$stack"
fi
for agent in "$@"; do
  sindri target "$stack" "$agent"
done
sindri apply "$stack" --file "$file"
