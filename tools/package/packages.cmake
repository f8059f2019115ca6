# packages - Debian packages by `./tools/dev package` (cpack -G DEB in a build with the prefix /usr).
# Each component of an install() is one package. finish.cmake adds what Debian's policy asks for.
set(MUSTER_MAINTAINER "muster maintainers <maintainers@muster.invalid>" CACHE STRING "Who answers for the packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL broker tools runtime dev python)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/finish.cmake")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${MUSTER_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/client")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# muster_package(COMPONENT NAME SECTION SUMMARY TEXT [DEPENDS])
function(muster_package component name section summary text)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARGN}" PARENT_SCOPE)
endfunction()

set(about "muster makes preemption harmless for jobs of many processes. When one machine
learns that it will be taken away, all processes save at the same step and
leave. The next start resumes from there.\n\n")
muster_package(broker muster-broker admin "broker that lets training jobs save before preemption"
    "${about}This package holds musterd, the broker, and its systemd unit. The unit is not
started by itself: make a key first, see musterd(8).")
muster_package(tools muster-tools admin "tool that runs and explains preemptible training jobs"
    "${about}This package holds muster, the tool: it starts ranks and restarts them
together, shows jobs, and tells why a save did or did not happen.")
muster_package(runtime libmuster1 libs "preemption handling for training programs"
    "${about}This package holds the libraries that training programs and queries use.")
muster_package(dev libmuster-dev libdevel "preemption handling for training programs (headers)"
    "${about}This package holds the headers, the static libraries and the manual of the
library."
    "libmuster1 (= ${PROJECT_VERSION}-1), libc6-dev, libzmq3-dev, libmsgpack-dev, libjansson-dev, libxxhash-dev, libsodium-dev, libcurl4-gnutls-dev, libsqlite3-dev, libpq-dev")

muster_package(python python3-muster python "preemption handling for training programs (Python)"
    "${about}This package holds the module muster for Python 3: for loops of your own, and
for PyTorch, JAX, Hugging Face and Lightning where they are installed."
    "libmuster1 (= ${PROJECT_VERSION}-1), python3 (>= 3.10), python3-cffi-backend")

set(CPACK_DEBIAN_BROKER_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/postinst;${CMAKE_CURRENT_LIST_DIR}/prerm;${CMAKE_CURRENT_LIST_DIR}/postrm")
set(CPACK_DEBIAN_BROKER_PACKAGE_SUGGESTS muster-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "muster-broker, gnuplot-nox") # for `muster bench --plot`
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "muster-tools, muster-broker")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/python/postinst;${CMAKE_CURRENT_LIST_DIR}/python/prerm")
file(WRITE "${CMAKE_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
file(WRITE "${CMAKE_BINARY_DIR}/package/shlibs"
     "libmuster 1 libmuster1 (>= ${PROJECT_VERSION})\nlibmuster-query 1 libmuster1 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${CMAKE_BINARY_DIR}/package/triggers;${CMAKE_BINARY_DIR}/package/shlibs")
include(CPack)
