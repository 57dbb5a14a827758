# make_deb, for package.sh: program, libraries, headers, pkg-config file, CMake package, manual pages and
# completions as one Debian package.

# What the program and the library need: "libc6 (>= 2.35), libpng16-16 (>= 1.6.2-1)", say.
needed_packages() (
    cd "$root/../.."
    printf 'Source: n2ce\n\nPackage: n2ce\nArchitecture: any\n' >debian/control
    dpkg-shlibdeps -O debian/n2ce/usr/bin/n2ce debian/n2ce/usr/lib/"$multiarch"/libn2ce.so.*.*.* >needed
    sed -n 's/^shlibs:Depends=//p' needed
)

write_control() {
    cat <<END
Package: n2ce
Version: $version
Architecture: $architecture
Section: science
Priority: optional
Maintainer: The n2ce authors <n2ce@invalid>
Depends: $1
Suggests: libpng-dev, zlib1g-dev, liblzma-dev
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Description: density ratios and energy-based models
 Log ratios, divergences, mutual information, two-sample tests, anomaly
 detection and offline optimisation by noisier noise contrastive estimation:
 the program n2ce, the library with its headers, manual pages. The packages
 it suggests are for programs that link the static library.
END
}

fill_root() {
    DESTDIR=$root cmake --install "$build" --strip >/dev/null
    strip --strip-debug --enable-deterministic-archives "$root/usr/lib/$multiarch/libn2ce.a"
    gzip -9n "$root"/usr/share/man/man1/*.1
    documents=$root/usr/share/doc/n2ce
    mkdir -p "$documents"
    cp "$source/LICENSE" "$documents/copyright"
    gzip -9nc "$source/CHANGELOG.md" >"$documents/changelog.gz"
}

make_deb() (
    architecture=$(dpkg --print-architecture)
    root=$work/deb/debian/n2ce # where dpkg-shlibdeps expects it
    rm -rf "$work/deb"
    build_with ''
    fill_root
    mkdir "$root/DEBIAN"
    needed=$(needed_packages)
    write_control "$needed" >"$root/DEBIAN/control"
    echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
    (cd "$root" && find usr -type f | sort | xargs md5sum) >"$work/md5sums"
    mv "$work/md5sums" "$root/DEBIAN/md5sums"
    find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/n2ce_${version}_$architecture.deb" >/dev/null
)
