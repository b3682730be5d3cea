# Creates the Secret with the keys of the broker, unless it exists. The keys are in files of a volume in memory until
# then, and never in the output or in arguments.
#
# Variables: SECRET (its name), ADMIN_KEY and ENCRYPTION_KEY (names of the keys in it; the second may be empty),
# DIRECTORY (for the files).
set -eu
umask 077

# Prints random characters of the alphabet of keys.
print_random() {
  LC_ALL=C tr -dc '1-9A-HJ-NP-Za-km-z' < /dev/urandom | head -c "$1"
}

if [ -n "$(kubectl get secret "$SECRET" --ignore-not-found --output name)" ]; then
  echo "the Secret $SECRET exists and is not changed"
  exit 0
fi
printf 'brokkr_BR%s_%s\n' "$(print_random 6)" "$(print_random 40)" > "$DIRECTORY/$ADMIN_KEY"
set -- "--from-file=$DIRECTORY/$ADMIN_KEY"
if [ -n "$ENCRYPTION_KEY" ]; then
  od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' > "$DIRECTORY/$ENCRYPTION_KEY"
  set -- "$@" "--from-file=$DIRECTORY/$ENCRYPTION_KEY"
fi
kubectl create secret generic "$SECRET" "$@"
