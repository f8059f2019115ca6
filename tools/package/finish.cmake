# finish - cpack runs this over each component's files before it packs them: compressed pages, the changelog and the
# licence, as Debian's policy asks. Files of the same version are the same bytes at any time: gzip -n, and the date of
# SOURCE_DATE_EPOCH.
set(broker muster-broker)
set(tools muster-tools)
set(runtime libmuster1)
set(dev libmuster-dev)
set(python python3-muster)
set(broker_overrides "# Behind a test that systemd runs; the package does not enable the unit.
muster-broker: maintainer-script-calls-systemctl *\n")
set(runtime_overrides "# cpack writes the call beside the trigger.
libmuster1: maintscript-calls-ldconfig *\n")
get_filename_component(source "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(version "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

function(finish_gzip)
    execute_process(COMMAND gzip -9nf ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component broker tools runtime dev python)
    set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share")
    set(package ${${component}})
    set(doc "${root}/doc/${package}")
    file(GLOB_RECURSE pages "${root}/man/*")
    if(pages)
        finish_gzip(${pages})
    endif()
    file(MAKE_DIRECTORY "${doc}")
    configure_file("${source}/tools/package/copyright" "${doc}/copyright" COPYONLY)
    configure_file("${source}/CHANGELOG.md" "${doc}/changelog" COPYONLY)
    file(WRITE "${doc}/changelog.Debian" "muster (${version}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}; changelog.gz says what changed.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}
")
    finish_gzip("${doc}/changelog" "${doc}/changelog.Debian")
    file(WRITE "${root}/lintian/overrides/${package}" "${${component}_overrides}"
         "# It goes to no archive of Debian's, which would have such a bug.\n"
         "${package}: initial-upload-closes-no-bugs *\n")
endforeach()
