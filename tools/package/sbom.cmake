# sbom: muster.spdx.json (SPDX 2.3) says which packages the programs of this build were linked with, and in which version.
# Its time is SOURCE_DATE_EPOCH, so that two builds of one source give one file.
set(sbom_created "1970-01-01T00:00:00Z")
if(DEFINED ENV{SOURCE_DATE_EPOCH})
    string(TIMESTAMP sbom_created "%Y-%m-%dT%H:%M:%SZ" UTC)
endif()
set(sbom_packages "")
set(sbom_relations "")
# NAME VARIABLE LICENSE: a library that pkg-config found as VARIABLE.
foreach(library "libzmq MUSTER_ZMQ LGPL-3.0-or-later" "libczmq MUSTER_CZMQ MPL-2.0"
        "libmsgpackc MUSTER_MSGPACK BSL-1.0" "libsqlite3 MUSTER_SQLITE blessing" "libjansson MUSTER_JANSSON MIT"
        "libxxhash MUSTER_XXHASH BSD-2-Clause" "libsodium MUSTER_SODIUM ISC" "libcurl MUSTER_CURL curl"
        "libmicrohttpd MUSTER_MICROHTTPD LGPL-2.1-or-later" "libpq MUSTER_PQ PostgreSQL")
    separate_arguments(words UNIX_COMMAND "${library}")
    list(GET words 0 name)
    list(GET words 1 variable)
    list(GET words 2 license)
    if(NOT ${variable}_FOUND)
        continue() # an option is off
    endif()
    string(APPEND sbom_packages ",
    {
      \"name\": \"${name}\",
      \"SPDXID\": \"SPDXRef-${name}\",
      \"versionInfo\": \"${${variable}_VERSION}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${license}\",
      \"licenseDeclared\": \"${license}\",
      \"copyrightText\": \"NOASSERTION\"
    }")
    string(APPEND sbom_relations ",
    {
      \"spdxElementId\": \"SPDXRef-muster\",
      \"relationshipType\": \"DYNAMIC_LINK\",
      \"relatedSpdxElement\": \"SPDXRef-${name}\"
    }")
endforeach()
configure_file("${CMAKE_CURRENT_LIST_DIR}/muster.spdx.json.in" "${CMAKE_BINARY_DIR}/muster.spdx.json" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/muster.spdx.json" DESTINATION "${CMAKE_INSTALL_DATADIR}/muster")
