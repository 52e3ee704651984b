#!/bin/sh
# Writes the files of a release: archives, notes, lists of modules (CycloneDX), digests and their signature.
# usage: [RELEASE_KEY=key.pem] scripts/release.sh VERSION [DIR]
#
# DIR is dist/ unless given; what an earlier release wrote there is replaced. RELEASE_KEY names an ECDSA P-256 key in
# PEM form that signs SHA256SUMS; without it nothing is signed. For tests, RELEASE_DIRTY=true allows uncommitted changes,
# and RELEASE_SYSTEMS lists the systems that mlp, svc and assistant are built for, such as "linux/amd64 windows/arm64".
# make release installs what this needs. The same commit, Go, C compiler and zstd give the same bytes, except for the
# signature. Exit codes: 0 written, 1 failed, 2 wrong arguments.
set -eu
cd "$(dirname -- "$0")/.."
root=$PWD
version=${1:-} out=${2:-dist}

say() { printf 'release: %s\n' "$*" >&2; }
die() { code=$1; shift; say "$@"; exit "$code"; }
have() { command -v "$1" >/dev/null 2>&1; }

[ $# -le 2 ] && [ -n "$out" ] || die 2 "too many arguments, or an empty one; use: scripts/release.sh VERSION [DIR]"
[ -n "$version" ] || die 2 "no version given; use: make release VERSION=1.2.3, or scripts/release.sh VERSION [DIR]"
printf '%s' "$version" | grep -qxE '(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?' ||
	die 2 "'$version' is not a semantic version such as 1.2.3 or 1.2.3-rc.1 (without a leading v)"

# Everything that can be refused is refused before the first build.
for tool in git go gzip node openssl python3 sha256sum tar zstd; do have "$tool" || die 1 "$tool is missing; make release installs it on Debian (as root)"; done
commit=$(git rev-parse HEAD) || die 1 "git cannot read this checkout, and a release is made of a commit; see above"
changes=$(git status --porcelain)
[ -z "$changes" ] || [ "${RELEASE_DIRTY:-}" = true ] ||
	die 1 "this checkout has changes that are in no commit, so no one could build the release again; commit or remove them first:
$changes"
setting() { sed -n "s/^$1=//p" scripts/setup.sh; }
go_version=$(setting go_version)
postgres=.cache/postgres-$(setting postgres_version).$(sed -n 's/^postgres_wheel=.*\.//p' scripts/setup.sh)
ort=.cache/onnxruntime/libonnxruntime.so.1
[ -x "$postgres/bin/postgres" ] && [ -f "$ort" ] || die 1 "PostgreSQL or ONNX Runtime is not in .cache; run make release, or scripts/setup.sh release"
[ -f services/dashboard-bff/internal/webui/site/.stamp ] && [ -f services/dashboard-bff/internal/docs/pages/README.md ] ||
	die 1 "the pages of the dashboard are not built; run make release, or scripts/web.sh and scripts/pages.sh"
systems=${RELEASE_SYSTEMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
for system in $systems; do
	case "$system" in linux/amd64 | linux/arm64 | darwin/amd64 | darwin/arm64 | windows/amd64 | windows/arm64) ;; *) die 1 "RELEASE_SYSTEMS has $system, which no program is released for; use linux, darwin or windows with /amd64 or /arm64" ;; esac
done
key=${RELEASE_KEY:-}
if [ -n "$key" ]; then
	[ -r "$key" ] || die 1 "RELEASE_KEY=$key cannot be read"
	openssl pkey -in "$key" -passin pass: -noout -text 2>/dev/null | grep -q 'ASN1 OID: prime256v1' ||
		die 1 "RELEASE_KEY=$key is not an ECDSA P-256 private key in PEM form without a passphrase; make one with: openssl ecparam -name prime256v1 -genkey -noout -out key.pem"
fi
if [ -e "$out" ] && [ ! -f "$out/SHA256SUMS" ]; then
	rmdir "$out" 2>/dev/null || die 1 "$out is not empty and holds no earlier release; remove it, or name another folder"
fi

umask 022
LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export LC_ALL TZ SOURCE_DATE_EPOCH
work=$root/.cache/release.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
files=$work/files
mkdir -p "$files"

# What a caller's environment could change in the programs is set here.
unset CGO_CFLAGS CGO_CPPFLAGS CGO_CXXFLAGS CGO_LDFLAGS GOAMD64 GOARM64 GOEXPERIMENT GOOS GOARCH
parallel=$(printf '%s' "${GOFLAGS:-}" | grep -oE '(^| )-p=[0-9]+' || true)
GOFLAGS="-buildvcs=false -trimpath$parallel" GOTOOLCHAIN=go$go_version
export GOFLAGS GOTOOLCHAIN
module=github.com/mlp-platform/platform
ldflags="-s -w -buildid="
cyclonedx=$(scripts/tool.sh cyclonedx-gomod)
nfpm=$(scripts/tool.sh nfpm)
for variable in libs/service.Version services/evidence-api.Version clients/svc-cli/internal/app.Version; do
	ldflags="$ldflags -X $module/$variable=$version"
done
# build FOLDER PACKAGE...
build() {
	into=$1
	shift
	mkdir -p "$into"
	go build -tags urfave_cli_no_docs -ldflags "$ldflags -extldflags=-Wl,--build-id=none" -o "$into/" "$@"
}

# pack FOLDER ARCHIVE: the folder below $work as .tar.zst, .tar.gz or .zip. Order, owners, modes and times do not depend
# on this machine.
pack() {
	case "$2" in
	*.zip)
		(cd "$work" && python3 - "$1" "$files/$2") <<-'END'
			import os, sys, time, zipfile
			folder, archive = sys.argv[1:]
			date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # zip begins in 1980
			with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
			    for path in sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names):
			        entry = zipfile.ZipInfo(path, date)
			        entry.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
			        entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
			        with open(path, "rb") as f:
			            z.writestr(entry, f.read(), compresslevel=9)
		END
		;;
	*)
		tar -C "$work" -cf "$work/$1.tar" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$1"
		case "$2" in
		*.gz) gzip -n9 <"$work/$1.tar" >"$files/$2" ;;
		# A fixed number of threads above one gives the same bytes on every machine.
		*) zstd -q -12 -T2 -o "$files/$2" "$work/$1.tar" ;;
		esac
		rm "$work/$1.tar"
		;;
	esac
	say "$2 $(($(wc -c <"$files/$2") / 1000000)) MB"
}

# sbom PROGRAM NAME: the Go modules in a program for $os/$arch, as NAME.cdx.json. The modules of this repository have the
# release's version.
sbom() {
	# The tool takes the system from the environment, not from the program.
	GOOS=$os GOARCH=$arch "$cyclonedx" bin -json -std -noserial -notimestamp -version "v$version" -output "$work/sbom.json" "$1"
	sed "s/(devel)/v$version/g" "$work/sbom.json" >"$files/$2.cdx.json"
}

# deb CONFIG ARCH: the Debian package of deploy/debian/CONFIG.yaml from the files in $tree. Its times come from the commit.
deb() {
	gzip -n9 -k "$tree"/*.1 "$tree"/man/man1/*.1 2>/dev/null || true # one of the two
	# The tool copies modes and times of folders; those of symbolic links it sets itself.
	chmod -R u=rwX,go=rX "$tree"
	find "$tree" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
	sed "s|@VERSION@|$version|; s|@ARCH@|$2|; s|@TREE@|$tree|" "deploy/debian/$1.yaml" >"$work/$1.yaml"
	"$nfpm" package --packager deb --config "$work/$1.yaml" --target "$files/" >/dev/null
	say "the Debian package of $1 for $2"
}

platform_archive() {
	os=linux arch=amd64
	name=platform_${version}_linux_amd64
	to=$work/$name
	say "building the programs of $name"
	CGO_ENABLED=1
	export CGO_ENABLED
	build "$to/bin" ./services/standalone/cmd/platform ./clients/mlp-cli/cmd/mlp ./clients/svc-cli/cmd/svc ./services/assistant/cmd/assistant \
		./services/trainer/cmd/trainer ./services/control-plane/cmd/control-plane
	# Both are found beside the programs.
	cp "$ort" "$to/bin/"
	cp -R "$postgres" "$to/bin/postgres"
	# The manuals call programs bin/NAME; ./NAME is shorter.
	for program in platform mlp svc assistant; do ln -s "bin/$program" "$to/$program"; done
	mkdir -p "$to/completions"
	for program in mlp svc; do
		SHELL=/bin/bash "$to/bin/$program" --show-completion >"$to/completions/$program.bash"
		SHELL=/bin/zsh "$to/bin/$program" --show-completion >"$to/completions/_$program"
		SHELL=/usr/bin/fish "$to/bin/$program" --show-completion >"$to/completions/$program.fish"
	done
	mkdir -p "$to/man/man1"
	for program in mlp svc; do go run -ldflags "$ldflags" "./clients/$program-cli/cmd/$program-man" >"$to/man/man1/$program.1"; done
	cp README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE NOTICE THIRD_PARTY_LICENSES.md "$to/"
	# From git, so that no stray file of this checkout gets in.
	git ls-files -z docs | xargs -0 cp --parents -t "$to"
	for program in "$to"/bin/*; do
		case "$program" in *.so.* | */postgres) ;; *) sbom "$program" "$name.${program##*/}" ;; esac
	done
	pack "$name" "$name.tar.zst"
	tree=$to
	deb platform amd64
}

# single_archives OS ARCH: mlp, svc and assistant, each in an archive without C code in it.
single_archives() {
	os=$1 arch=$2 suffix='' form=tar.gz
	[ "$os" != windows ] || suffix=.exe form=zip
	say "building mlp, svc and assistant for $os/$arch"
	CGO_ENABLED=0
	export CGO_ENABLED
	common=$ldflags
	# macOS identifies a program by a number that the linker derives from the build id.
	[ "$os" != darwin ] || ldflags=$(printf '%s' "$ldflags" | sed 's/ -buildid=//')
	GOOS=$os GOARCH=$arch build "$work/$os-$arch" ./clients/mlp-cli/cmd/mlp ./clients/svc-cli/cmd/svc ./services/assistant/cmd/assistant
	ldflags=$common
	if [ "$os" = linux ]; then
		tree=$work/deb-$arch
		mkdir "$tree"
		cp "$work/$os-$arch/mlp" "$work/$os-$arch/svc" LICENSE NOTICE THIRD_PARTY_LICENSES.md "$platform"/man/man1/*.1 "$platform"/completions/*.bash "$platform"/completions/_* "$tree/"
		deb cli "$arch"
		rm -r "$tree"
	fi
	for program in mlp svc assistant; do
		name=${program}_${version}_${os}_$arch
		to=$work/$name
		mkdir "$to"
		mv "$work/$os-$arch/$program$suffix" "$to/"
		cp LICENSE NOTICE THIRD_PARTY_LICENSES.md "$to/"
		if [ "$program" = assistant ]; then
			cp docs/assistant.md "$to/"
		else
			cp "docs/$program.md" "$to/"
			[ "$os" = windows ] || cp "$platform/man/man1/$program.1" "$platform/completions/$program.bash" "$platform/completions/_$program" "$platform/completions/$program.fish" "$to/"
		fi
		sbom "$to/$program$suffix" "$name"
		pack "$name" "$name.$form"
		rm -r "$to"
	done
}

platform_archive
platform=$to
for system in $systems; do single_archives "${system%/*}" "${system#*/}"; done

scripts/notes.sh "$version" >"$files/RELEASE_NOTES.md"
cp scripts/verify.sh "$files/verify.sh"
(cd "$files" && sha256sum -- *) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$files/"
if [ -n "$key" ]; then
	openssl dgst -sha256 -sign "$key" -passin pass: -out "$work/signature" "$files/SHA256SUMS"
	openssl base64 -A -in "$work/signature" >"$files/SHA256SUMS.sig"
else
	say "nothing was signed: RELEASE_KEY names no key"
fi
rm -rf "$out"
mkdir -p "$(dirname -- "$out")"
mv "$files" "$out"
say "version $version of commit $commit is in $out"
